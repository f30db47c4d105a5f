"""Which losses end a window's cycle."""

import numpy as np
import pytest

from twoway.measure.metrics.window import cycle_ends

S = 1_000_000_000


@pytest.mark.parametrize(
    ("loss_s", "ends_s"),
    [
        ([50, 150, 250], [150, 250]),  # each ends avoidance
        ([50, 150, 155, 250, 255], [150, 250]),  # slow start loses as well
        ([55, 105, 155, 255, 305], [155, 255, 305]),  # half as long still is one
        ([120], [120]),
        ([], []),
    ],
)
def test_losses_after_the_longest_intervals_end_cycles(
    loss_s: list[int], ends_s: list[int]
) -> None:
    """Of the losses from 110 s on those count that come half the longest interval after another."""
    loss_ns = np.array(loss_s, dtype=np.int64) * S
    assert cycle_ends(loss_ns, 0, (110 * S, 400 * S)).tolist() == [at * S for at in ends_s]
