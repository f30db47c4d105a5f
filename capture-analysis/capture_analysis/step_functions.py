"""Compute the lengths of queues as step functions of time, and sums over time.

In C (clib/steps.c), by ctypes.
"""

import ctypes
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from capture_analysis import clib
from capture_analysis.columns import IntArray

# Binary places of a root, so that a coefficient is right to its last digit.
_BITS = 64
# Laid out as struct ca_sum in clib/steps.h.
_SUM = np.dtype([("low", "<u8"), ("high", "<i8")])


class Sums(NamedTuple):
    """Sums over time of two functions x and y, whole and exact.

    Attributes:
        lasts: length of the time, ns.
        x, y, xx, yy, xy: sums of x, y and their products, times ns.
        x_busy, y_busy, both_busy: time in which x, y or both are above 0, ns.
    """

    lasts: int
    x: int
    y: int
    xx: int
    yy: int
    xy: int
    x_busy: int
    y_busy: int
    both_busy: int

    def correlation(self) -> float:
        """Compute Pearson's coefficient of x and y; NaN if one never changes."""
        return _pearson(self.lasts, (self.x, self.y, self.xx, self.yy, self.xy))

    def busy_correlation(self) -> float:
        """Compute the coefficient of x > 0 and y > 0; NaN if one never changes."""
        busy = self.x_busy, self.y_busy
        return _pearson(self.lasts, (*busy, *busy, self.both_busy))


class LastToEmpty(NamedTuple):
    """The queue that would run empty last if no more packets came.

    Attributes:
        last_ns: for each queue, the time for which it alone would be the last, ns.
        changes: how often another queue becomes the last, the first of several at the same time.
        busy_ns: the time for which any queue holds packets, ns; changes at other times do not
            count.
    """

    last_ns: list[int]
    changes: int
    busy_ns: int


class _Queue(ctypes.Structure):
    """Laid out as struct ca_queue in clib/steps.h."""

    _fields_ = [
        ("entered_ns", ctypes.c_void_p),
        ("left_ns", ctypes.c_void_p),
        ("count", ctypes.c_size_t),
        ("next", ctypes.c_size_t),
        ("empty_ns", ctypes.c_int64),
        ("last_ns", ctypes.c_int64),
    ]


class _Steps(ctypes.Structure):
    """Laid out as struct ca_steps in clib/steps.h."""

    _fields_ = [
        ("time_ns", ctypes.c_void_p),
        ("level", ctypes.c_void_p),
        ("count", ctypes.c_size_t),
    ]


def queue_length(entered_ns: IntArray, left_ns: IntArray) -> tuple[IntArray, IntArray]:
    """Compute a queue's length over time.

    Args:
        entered_ns: shape (n,), times at which packets enter, ascending.
        left_ns: shape (m,), times at which packets leave, ascending.

    Returns: shape (n + m,), a time for each event, and the packets in the queue from then on; a
        packet that enters at the instant of a departure does so after it.
    """
    entered, left = (np.ascontiguousarray(each, np.int64) for each in (entered_ns, left_ns))
    time_ns = np.empty(len(entered) + len(left), np.int64)
    packets: IntArray = np.empty(len(time_ns), "i4")
    clib.load().ca_steps_of_queue(
        entered.ctypes.data,
        len(entered),
        left.ctypes.data,
        len(left),
        time_ns.ctypes.data,
        packets.ctypes.data,
    )
    return time_ns, packets


def last_to_empty(
    queues: Sequence[tuple[IntArray, IntArray]], start_ns: int, stop_ns: int
) -> LastToEmpty:
    """Find which of several queues would run empty last, at all times of a window.

    At each time the queues are compared as if no more packets came.

    Args:
        queues: for each queue, shape (n,), the times at which its packets enter, ascending; and
            when each leaves, or a negative number if it never was in the queue.
        start_ns: start of the window.
        stop_ns: its end.
    """
    kept = [_columns(queue, ("i8", "i8")) for queue in queues]
    given = (_Queue * len(kept))(
        *(_Queue(*(c.ctypes.data for c in columns), len(columns[0])) for columns in kept)
    )
    busy_ns = ctypes.c_int64()
    changes = clib.load().ca_steps_last_to_empty(
        given, len(kept), start_ns, stop_ns, ctypes.byref(busy_ns)
    )
    return LastToEmpty([queue.last_ns for queue in given], changes, busy_ns.value)


def sums_over_time(
    x: tuple[IntArray, IntArray], y: tuple[IntArray, IntArray], start_ns: int, stop_ns: int
) -> Sums:
    """Sum two step functions between two times.

    Args:
        x: shape (n,), the times of its steps, ascending; and its level from each on, below 2^31.
        y: the same of the other function.
        start_ns: start of the window.
        stop_ns: its end.
    """
    kept = [_columns(steps, ("i8", "i4")) for steps in (x, y)]
    one, two = (_Steps(*(c.ctypes.data for c in columns), len(columns[0])) for columns in kept)
    found = np.empty(len(Sums._fields) - 1, _SUM)
    clib.load().ca_steps_sum(
        ctypes.byref(one), ctypes.byref(two), start_ns, stop_ns, found.ctypes.data
    )
    return Sums(stop_ns - start_ns, *((high << 64) + low for low, high in found.tolist()))


def _columns(given: Sequence[IntArray], kinds: Sequence[str]) -> list[IntArray]:
    """Convert columns to types of C.

    Raises: ValueError if they differ in length.
    """
    columns = [np.ascontiguousarray(each, kind) for each, kind in zip(given, kinds, strict=True)]
    if len({column.shape for column in columns}) > 1:
        raise ValueError("columns must be of one length")
    return columns


def _pearson(lasts: int, sums: Sequence[int]) -> float:
    x, y, xx, yy, xy = sums
    spread = (lasts * xx - x * x) * (lasts * yy - y * y)
    if not spread:
        return math.nan
    return ((lasts * xy - x * y) << _BITS) / math.isqrt(spread << 2 * _BITS)
