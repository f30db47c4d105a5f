"""Effects of a link on packets, one file an element."""
