"""Lab hosts: what they are sent, and one experiment over several of them."""
