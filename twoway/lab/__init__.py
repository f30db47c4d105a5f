"""Lab hosts: the archives that they receive, and multi-host runs."""
