"""Comments on the packets of a capture, and the copy of it that has them."""
