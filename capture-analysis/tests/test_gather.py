"""Rows of a column, widened, in C and with numpy."""

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
    """Every value of every type keeps its sign and size, rows come in the order asked for."""
    limits = np.iinfo(kind)
    column = np.array([limits.min, limits.max, 1, limits.max // 3], dtype=kind)
    rows = np.array([3, 0, 0, 1, 2])
    taken = gather(column, rows, in_c)
    assert taken.dtype == np.int64
    assert taken.tolist() == [limits.max // 3, limits.min, limits.min, limits.max, 1]


@pytest.mark.parametrize("in_c", WAYS)
def test_no_rows(in_c: bool) -> None:
    """No row may be asked for, of a column that may have none."""
    assert gather(np.zeros(0, np.uint32), np.zeros(0, np.int64), in_c).shape == (0,)


@pytest.mark.parametrize("in_c", WAYS)
@pytest.mark.parametrize("row", [4, 1 << 62])
def test_no_such_row(row: int, in_c: bool) -> None:
    """What lies beyond the column is not read."""
    with pytest.raises(IndexError):
        gather(np.zeros(4, np.uint8), np.array([0, row]), in_c)
