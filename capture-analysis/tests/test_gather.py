"""Rows by lane and columns in that order, in C and with numpy."""

import numpy as np
import pytest
from capture_analysis import native
from capture_analysis.columns import COLUMN_TYPES
from capture_analysis.gather import LaneOrder, by_lane, gather
from capture_analysis.tracking import TRACKED_TYPES

TYPES = sorted({*COLUMN_TYPES.values(), *TRACKED_TYPES.values()}, key=str)
WAYS = [
    False,
    pytest.param(True, marks=pytest.mark.skipif(not native.available(), reason="no library")),
]

MOST = 1 << 20


def into(rows: list[int], places: list[int]) -> LaneOrder:
    """Rows that go to places, of no lane."""
    given, to = np.array(rows, np.int64), np.array(places, np.int64)
    return LaneOrder(given, to, given, given, given)


@pytest.mark.parametrize("in_c", WAYS)
def test_by_lane(in_c: bool) -> None:
    """Rows come by lane, least first, and within a lane as they were given."""
    lane = np.array([7, MOST, 7, 3, MOST], np.uint32)
    order = by_lane(lane, np.array([0, 1, 2, 4]), in_c)
    assert order.lanes.tolist() == [7, MOST]
    assert order.counts.tolist() == [2, 2]
    assert order.rows.tolist() == [0, 2, 1, 4]
    assert order.places.tolist() == [0, 2, 1, 3]


@pytest.mark.skipif(not native.available(), reason="no library")
@pytest.mark.parametrize("lanes", [1, 50, 1 << 16, 1 << 20])
def test_by_lane_alike(lanes: int) -> None:
    """C and numpy order many rows alike, however many lanes there are."""
    draw = np.random.default_rng(lanes)
    lane = draw.integers(0, lanes, 5000).astype(np.uint32)
    rows = np.flatnonzero(draw.random(5000) < 0.5)
    in_c, in_numpy = by_lane(lane, rows, in_c=True), by_lane(lane, rows, in_c=False)
    for name, column in vars(in_c).items():
        assert column.dtype == np.int64
        np.testing.assert_array_equal(column, getattr(in_numpy, name))


@pytest.mark.parametrize("in_c", WAYS)
def test_no_such_row(in_c: bool) -> None:
    """A row that the table does not have is refused."""
    with pytest.raises(IndexError):
        by_lane(np.zeros(4, np.uint32), np.array([0, 4]), in_c)


@pytest.mark.parametrize("in_c", WAYS)
@pytest.mark.parametrize("kind", TYPES, ids=str)
def test_any_values(kind: np.dtype[np.integer], in_c: bool) -> None:
    """Every value of every type keeps its sign and size, rows come to the places asked for."""
    limits = np.iinfo(kind)
    column = np.array([limits.min, limits.max, 1, limits.max // 3], dtype=kind)
    taken = gather(column, into([0, 0, 1, 2, 3], [2, 1, 3, 4, 0]), in_c)
    assert taken.dtype == np.int64
    assert taken.tolist() == [limits.max // 3, limits.min, limits.min, limits.max, 1]


@pytest.mark.parametrize("in_c", WAYS)
def test_no_rows(in_c: bool) -> None:
    """No row may be asked for, of a column that may have none."""
    none = by_lane(np.zeros(0, np.uint32), np.zeros(0, np.int64), in_c)
    assert gather(np.zeros(0, np.uint32), none, in_c).shape == (0,)


@pytest.mark.parametrize("in_c", WAYS)
@pytest.mark.parametrize(("row", "place"), [(4, 1), (1 << 62, 1), (3, 2)])
def test_out_of_bounds(row: int, place: int, in_c: bool) -> None:
    """What lies beyond the column is not read, nor written beyond the result."""
    with pytest.raises(IndexError):
        gather(np.zeros(4, np.uint8), into([0, row], [0, place]), in_c)
