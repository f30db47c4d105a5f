"""Facts of a capture's connections, and the blocks of packets that they are found in."""
