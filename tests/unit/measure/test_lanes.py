"""Rows of packets by lane, found once for all connections."""

import numpy as np
import pytest
from packet_columns import packets

from twoway.measure.lanes import Lanes, lanes_of


@pytest.mark.parametrize("highest", [3, 1 << 17])
def test_rows_of_lanes(highest: int) -> None:
    """The rows found for some lanes equal those of a search through all rows."""
    lane = np.random.default_rng(1).integers(0, 4, 500).astype(np.uint32)
    lane[lane == 3] = highest
    lanes = Lanes(lane)
    for some in ([0], [2], [highest], [0, highest], [1, 2, highest], []):
        assert lanes.rows(*some).tolist() == np.flatnonzero(np.isin(lane, some)).tolist()


def test_unknown_lane_has_no_rows() -> None:
    """A connection that is not in a capture has no rows there."""
    assert Lanes(np.array([1, 0], dtype=np.uint32)).rows(7).tolist() == []
    assert Lanes(np.zeros(0, dtype=np.uint32)).rows(0).tolist() == []


def test_halves_have_lanes_of_their_own() -> None:
    """Data and ACKs of one connection are two lanes, and no two connections share one."""
    both = packets(flow=[0, 0, 1, 1], half=[0, 1, 0, 1])
    assert lanes_of(both).tolist() == [0, 1, 2, 3]
