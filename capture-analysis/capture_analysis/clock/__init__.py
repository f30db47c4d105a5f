"""The offset between the clocks of two captures, and its bounds over time."""
