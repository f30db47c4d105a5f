"""Order packets by lane, and their columns so, widened: in C (clib/gather.c), by ctypes.

A lane is whatever has its own sequence of packets, such as a direction (blocks.py).
"""

import ctypes
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from capture_analysis import clib
from capture_analysis.columns import IntArray

# As in clib/gather.h.
_BEYOND = ctypes.c_size_t(-1).value
_NO_MEMORY = _BEYOND - 1


class _LaneOrder(ctypes.Structure):
    """As struct ca_lane_order in clib/gather.h."""

    _fields_ = [(name, ctypes.c_void_p) for name in ("places", "rows", "lanes", "counts")]


@dataclass(frozen=True)
class LaneOrder:
    """Rows by lane, within one in the order in which they were given.

    Attributes:
        given: shape (n,), the rows as they were given.
        places: shape (n,), where each of them goes.
        rows: shape (n,), the row in each place.
        lanes: shape (k,), those that have rows, ascending.
        counts: shape (k,), how many each has.
    """

    given: IntArray
    places: IntArray
    rows: IntArray
    lanes: IntArray
    counts: IntArray


def by_lane(lane: NDArray[np.uint32], rows: IntArray) -> LaneOrder:
    """Order rows by their lanes.

    Args:
        lane: shape (n,), uint32: the lane of each row that there is.
        rows: shape (k,), int64, 0..n-1: those to order.

    Raises: IndexError if there is no such row.
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
    return LaneOrder(rows, places, ordered, lanes[:found], counts[:found])


def gather(column: NDArray[np.integer], order: LaneOrder) -> IntArray:
    """The values of a column, as int64, in which differences do not wrap.

    Args:
        column: shape (n,), of a type of COLUMN_TYPES or TRACKED_TYPES.
        order: of rows 0..n-1.

    Returns: shape (k,).
    Raises: IndexError if there is no such row or place.
    """
    rows, places = order.given, order.places
    gathered = np.empty(len(rows), dtype=np.int64)
    column = np.ascontiguousarray(column)
    if rows.shape != places.shape or not rows.dtype == places.dtype == np.int64:
        raise ValueError("rows and places must be int64 and as many")
    if not clib.load().ca_gather(
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
