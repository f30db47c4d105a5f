"""Gathering rows by lane, and columns in that order."""

import numpy as np
import pytest
from capture_analysis.columns import COLUMN_TYPES
from capture_analysis.gather import LaneOrder, by_lane, gather
from capture_analysis.tracking import TRACKED_TYPES

TYPES = sorted({*COLUMN_TYPES.values(), *TRACKED_TYPES.values()}, key=str)
MOST = 1 << 20


def into(rows: list[int], places: list[int]) -> LaneOrder:
    """Return rows in these places, without lanes."""
    given, to = np.array(rows, np.int64), np.array(places, np.int64)
    return LaneOrder(given, to, given, given, given)


def test_by_lane() -> None:
    """Rows are in order of lane, and within a lane in the given order."""
    lane = np.array([7, MOST, 7, 3, MOST], np.uint32)
    order = by_lane(lane, np.array([0, 1, 2, 4]))
    assert order.lanes.tolist() == [7, MOST]
    assert order.counts.tolist() == [2, 2]
    assert order.rows.tolist() == [0, 2, 1, 4]
    assert order.places.tolist() == [0, 2, 1, 3]


@pytest.mark.parametrize("lanes", [1, 50, 1 << 16, 1 << 20])
def test_by_lane_alike(lanes: int) -> None:
    """Many rows are in the order of a stable sort, for any number of lanes."""
    draw = np.random.default_rng(lanes)
    lane = draw.integers(0, lanes, 5000).astype(np.uint32)
    rows = np.flatnonzero(draw.random(5000) < 0.5)
    order = by_lane(lane, rows)
    by_sort = np.argsort(lane[rows], kind="stable")
    found, counts = np.unique(lane[rows], return_counts=True)
    expected = (rows, np.argsort(by_sort), rows[by_sort], found, counts)
    for column, other in zip(vars(order).values(), expected, strict=True):
        assert column.dtype == np.int64
        np.testing.assert_array_equal(column, other)


def test_no_such_row() -> None:
    """A row that the table does not have is refused."""
    with pytest.raises(IndexError):
        by_lane(np.zeros(4, np.uint32), np.array([0, 4]))


@pytest.mark.parametrize("kind", TYPES, ids=str)
def test_any_values(kind: np.dtype[np.integer]) -> None:
    """Values of every type are exact, and rows come to the requested places."""
    limits = np.iinfo(kind)
    column = np.array([limits.min, limits.max, 1, limits.max // 3], dtype=kind)
    taken = gather(column, into([0, 0, 1, 2, 3], [2, 1, 3, 4, 0]))
    assert taken.dtype == np.int64
    assert taken.tolist() == [limits.max // 3, limits.min, limits.min, limits.max, 1]


def test_no_rows() -> None:
    """A request for no rows gives none, even from an empty column."""
    none = by_lane(np.zeros(0, np.uint32), np.zeros(0, np.int64))
    assert gather(np.zeros(0, np.uint32), none).shape == (0,)


@pytest.mark.parametrize(("row", "place"), [(4, 1), (1 << 62, 1), (3, 2)])
def test_out_of_bounds(row: int, place: int) -> None:
    """Nothing is read beyond the column or written beyond the result."""
    with pytest.raises(IndexError):
        gather(np.zeros(4, np.uint8), into([0, row], [0, place]))
