"""A server whose clients have each a link of their own: topology, programs, and what is drawn."""
