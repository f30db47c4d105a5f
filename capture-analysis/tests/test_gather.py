"""Rows of a column in another order, widened, in C and with numpy."""

import numpy as np
import pytest
from capture_analysis import native
from capture_analysis.columns import COLUMN_TYPES
from capture_analysis.gather import gather
from capture_analysis.tracking import TRACKED_TYPES

TYPES = sorted({*COLUMN_TYPES.values(), *TRACKED_TYPES.values()}, key=str)
WAYS = [
    False,
    pytest.param(True, marks=pytest.mark.skipif(not native.available(), reason="no library")),
]


@pytest.mark.parametrize("in_c", WAYS)
@pytest.mark.parametrize("kind", TYPES, ids=str)
def test_any_values(kind: np.dtype[np.integer], in_c: bool) -> None:
    """Every value of every type keeps its sign and size, rows come to the places asked for."""
    limits = np.iinfo(kind)
    column = np.array([limits.min, limits.max, 1, limits.max // 3], dtype=kind)
    rows, places = np.array([0, 0, 1, 2, 3]), np.array([2, 1, 3, 4, 0])
    taken = gather(column, rows, places, in_c)
    assert taken.dtype == np.int64
    assert taken.tolist() == [limits.max // 3, limits.min, limits.min, limits.max, 1]


@pytest.mark.parametrize("in_c", WAYS)
def test_no_rows(in_c: bool) -> None:
    """No row may be asked for, of a column that may have none."""
    none = np.zeros(0, np.int64)
    assert gather(np.zeros(0, np.uint32), none, none, in_c).shape == (0,)


@pytest.mark.parametrize("in_c", WAYS)
@pytest.mark.parametrize(("row", "place"), [(4, 1), (1 << 62, 1), (3, 2)])
def test_out_of_bounds(row: int, place: int, in_c: bool) -> None:
    """What lies beyond the column is not read, nor written beyond the result."""
    with pytest.raises(IndexError):
        gather(np.zeros(4, np.uint8), np.array([0, row]), np.array([0, place]), in_c)
