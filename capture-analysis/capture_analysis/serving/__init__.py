"""A page on this machine that reports on captures dropped on it."""
