"""Pair the packets of two captures.

The k-th packet of a key in one capture is the k-th in the other.
"""

import ctypes

import numpy as np

from capture_analysis import clib
from capture_analysis.columns import IntArray
from capture_analysis.two_captures.match_rows import Rows

_FAILED = ctypes.c_size_t(-1).value


def join(a_rows: Rows, b_rows: Rows, horizon_ns: int) -> tuple[IntArray, IntArray]:
    """Pair equal keys of two captures, first in first out.

    In C (clib/match.c), by ctypes.

    For each key, the earliest packets of both captures are a pair unless they are too far apart;
    then the earlier one has no partner. Pairs do not depend on how a capture is cut into parts, if
    packets without a partner are tried again with the next part.

    Args:
        a_rows: packets of one capture, of type ROW, in time order.
        b_rows: packets of the other, on the same clock.
        horizon_ns: packets farther apart than this are not a pair.

    Returns: rows of a, ascending, and the rows of b with the same packets.
    """
    a, b = np.ascontiguousarray(a_rows), np.ascontiguousarray(b_rows)
    found = np.empty((2, min(len(a), len(b))), dtype=np.int64)
    count = clib.load().ca_match_join(
        a.ctypes.data,
        len(a),
        b.ctypes.data,
        len(b),
        horizon_ns,
        clib.random_bits(),
        found[0].ctypes.data,
        found[1].ctypes.data,
    )
    if count == _FAILED:
        raise MemoryError
    return found[0, :count], found[1, :count]


def partners(a: IntArray, b: IntArray) -> IntArray:
    """Find each key of one capture in another, whatever the times.

    In C (clib/match.c), by ctypes.

    Args:
        a: shape (n,), int64, the keys of one capture's packets, in order.
        b: shape (m,), int64, those of the other.

    Returns: shape (n,), for the k-th packet of a key the row of the k-th in b; -1 if b has fewer.
    """
    a, b = (np.ascontiguousarray(keys, dtype=np.int64) for keys in (a, b))
    rows = np.empty(len(a), dtype=np.int64)
    if not clib.load().ca_match_partners(
        a.ctypes.data, len(a), b.ctypes.data, len(b), clib.random_bits(), rows.ctypes.data
    ):
        raise MemoryError
    return rows
