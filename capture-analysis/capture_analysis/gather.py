"""Some packets by lane, and their columns in that order, widened: in C (native/gather.c), or numpy.

A lane is whatever has its own sequence of packets, such as a direction (blocks.py).
"""

import ctypes
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from capture_analysis import native
from capture_analysis.columns import IntArray
from capture_analysis.runs import ends_of, starts_of

# As in native/gather.h.
_BEYOND = ctypes.c_size_t(-1).value
_NO_MEMORY = _BEYOND - 1
# Numpy sorts numbers of 16 bits by radix.
_SMALL = 1 << 16


class _LaneOrder(ctypes.Structure):
    """As struct ca_lane_order in native/gather.h."""

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


def by_lane(lane: NDArray[np.uint32], rows: IntArray, in_c: bool | None = None) -> LaneOrder:
    """Order rows by their lanes.

    Args:
        lane: shape (n,), uint32: the lane of each row that there is.
        rows: shape (k,), int64, 0..n-1: those to order.
        in_c: whether the native library does; by default, if there is one.

    Raises: IndexError if there is no such row.
    """
    if not (native.available() if in_c is None else in_c):
        return _by_lane(lane, rows)
    if lane.dtype != np.uint32 or rows.dtype != np.int64:
        raise ValueError("lanes must be uint32 and rows int64")
    lane, rows = np.ascontiguousarray(lane), np.ascontiguousarray(rows)
    places, ordered, lanes, counts = np.empty((4, len(rows)), dtype=np.int64)
    order = _LaneOrder(*(each.ctypes.data for each in (places, ordered, lanes, counts)))
    found: int = native.load().ca_order(
        lane.ctypes.data, len(lane), rows.ctypes.data, len(rows), ctypes.byref(order)
    )
    if found == _BEYOND:
        raise IndexError(f"rows beyond {len(lane)}")
    if found == _NO_MEMORY:
        raise MemoryError
    return LaneOrder(rows, places, ordered, lanes[:found], counts[:found])


def _by_lane(lane: NDArray[np.uint32], rows: IntArray) -> LaneOrder:
    """The same with numpy."""
    mine = lane[rows]
    if int(mine.max(initial=0)) < _SMALL:
        mine = mine.astype(np.uint16)
    order = np.argsort(mine, kind="stable")
    places = np.empty_like(order)
    places[order] = np.arange(len(order))
    mine = mine[order]
    starts = starts_of(mine).nonzero()[0]
    counts = ends_of(starts, len(order)) - starts + 1
    return LaneOrder(rows, places, rows[order], mine[starts].astype(np.int64), counts)


def gather(column: NDArray[np.integer], order: LaneOrder, in_c: bool | None = None) -> IntArray:
    """The values of a column, as int64, in which differences do not wrap.

    Args:
        column: shape (n,), of a type of COLUMN_TYPES or TRACKED_TYPES.
        order: of rows 0..n-1.
        in_c: whether the native library takes them; by default, if there is one.

    Returns: shape (k,).
    Raises: IndexError if there is no such row or place.
    """
    rows, places = order.given, order.places
    gathered = np.empty(len(rows), dtype=np.int64)
    if not (native.available() if in_c is None else in_c):
        gathered[places] = column[rows]
        return gathered
    column = np.ascontiguousarray(column)
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
