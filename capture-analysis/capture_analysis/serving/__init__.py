"""A page on this machine that reports on a capture that is dropped on it."""
