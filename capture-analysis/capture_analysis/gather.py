"""Some rows of a column in another order, widened: in C (native/gather.c), or with numpy."""

import numpy as np
from numpy.typing import NDArray

from capture_analysis import native
from capture_analysis.columns import IntArray


def gather(
    column: NDArray[np.integer], rows: IntArray, places: IntArray, in_c: bool | None = None
) -> IntArray:
    """The values of a column at some rows, as int64, in which differences do not wrap.

    Args:
        column: shape (n,), of a type of COLUMN_TYPES or TRACKED_TYPES.
        rows: shape (k,), 0..n-1.
        places: shape (k,), where each goes: a permutation of 0..k-1.
        in_c: whether the native library takes them; by default, if there is one.

    Returns: shape (k,).
    Raises: IndexError if there is no such row or place.
    """
    gathered = np.empty(len(rows), dtype=np.int64)
    if not (native.available() if in_c is None else in_c):
        gathered[places] = column[rows]
        return gathered
    column = np.ascontiguousarray(column)
    rows, places = np.ascontiguousarray(rows), np.ascontiguousarray(places)
    if rows.shape != places.shape or not rows.dtype == places.dtype == np.int64:
        raise ValueError("rows and places must be int64 and as many")
    if not native.load().ca_gather(
        column.ctypes.data,
        column.itemsize,
        len(column),
        rows.ctypes.data,
        places.ctypes.data,
        len(rows),
        gathered.ctypes.data,
    ):
        raise IndexError(f"rows beyond {len(column)}, or places beyond {len(rows)}")
    return gathered
