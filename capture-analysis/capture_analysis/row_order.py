"""Sort packets by lane; in C (clib/order.c), by ctypes.

A lane is the number of a sequence of packets, such as a direction (directions.py).
"""

import ctypes
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from capture_analysis import clib
from capture_analysis.columns import IntArray

# Values of clib/order.h.
_BEYOND = ctypes.c_size_t(-1).value
_NO_MEMORY = _BEYOND - 1


class _LaneOrder(ctypes.Structure):
    """Laid out as struct ca_lane_order in clib/order.h."""

    _fields_ = [(name, ctypes.c_void_p) for name in ("places", "rows", "lanes", "counts")]


@dataclass(frozen=True)
class LaneOrder:
    """Rows sorted by lane; rows of one lane keep the order given.

    Attributes:
        places: shape (n,), the place of each given row in the sorted order.
        rows: shape (n,), the row at each place.
        lanes: shape (k,), the lanes that have rows, ascending.
        counts: shape (k,), rows of each of these lanes.
    """

    places: IntArray
    rows: IntArray
    lanes: IntArray
    counts: IntArray


def by_lane(lane: NDArray[np.uint32], rows: IntArray) -> LaneOrder:
    """Sort rows by their lanes.

    Args:
        lane: shape (n,), uint32: the lane of every row.
        rows: shape (k,), int64, 0..n-1: the rows to sort.

    Raises: IndexError if a row is not in 0..n-1.
    """
    if lane.dtype != np.uint32 or rows.dtype != np.int64:
        raise ValueError("lanes must be uint32 and rows int64")
    lane, rows = np.ascontiguousarray(lane), np.ascontiguousarray(rows)
    places, ordered, lanes, counts = np.empty((4, len(rows)), dtype=np.int64)
    order = _LaneOrder(*(each.ctypes.data for each in (places, ordered, lanes, counts)))
    found: int = clib.load().ca_order(
        lane.ctypes.data, len(lane), rows.ctypes.data, len(rows), ctypes.byref(order)
    )
    if found == _BEYOND:
        raise IndexError(f"rows beyond {len(lane)}")
    if found == _NO_MEMORY:
        raise MemoryError
    return LaneOrder(places, ordered, lanes[:found], counts[:found])
