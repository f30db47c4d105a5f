"""Some rows of a column, widened: in C (native/gather.c), or with numpy."""

import numpy as np
from numpy.typing import NDArray

from capture_analysis import native
from capture_analysis.columns import IntArray


def gather(column: NDArray[np.integer], rows: IntArray, in_c: bool | None = None) -> IntArray:
    """The values of a column at some rows, as int64, in which differences do not wrap.

    Args:
        column: shape (n,), of a type of COLUMN_TYPES or TRACKED_TYPES, contiguous.
        rows: shape (k,), 0..n-1, contiguous.
        in_c: whether the native library takes them; by default, if there is one.

    Returns: shape (k,).
    Raises: IndexError if there is no such row.
    """
    if not (native.available() if in_c is None else in_c):
        return column.take(rows).astype(np.int64, copy=False)
    if not (column.flags.c_contiguous and rows.flags.c_contiguous and rows.dtype == np.int64):
        raise ValueError("column and rows must be contiguous, and rows int64")
    taken = np.empty(len(rows), dtype=np.int64)
    if not native.load().ca_gather(
        column.ctypes.data,
        column.itemsize,
        len(column),
        rows.ctypes.data,
        len(rows),
        taken.ctypes.data,
    ):
        raise IndexError(f"rows beyond the {len(column)} there are")
    return taken
