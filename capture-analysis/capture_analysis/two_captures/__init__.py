"""What two captures of a path say together: the same packets at both, and their clocks."""
