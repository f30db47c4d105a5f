"""Round trips: sequence numbers that begin again at 0."""

import numpy as np

from twoway.measure.round_trips import unwrapped


def test_sequence_numbers_go_on_behind_32_bits() -> None:
    """Numbers that begin again at 0 go on, and one that comes back is where it was."""
    origin = (1 << 32) - 10
    numbers = np.array([origin, 5, origin, 40, origin - 1], dtype=np.uint32)
    assert unwrapped(numbers, origin).tolist() == [0, 15, 0, 50, -1]
