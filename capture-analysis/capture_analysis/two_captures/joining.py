"""Join two captures: the k-th packet of a kind here is the k-th there."""

import ctypes

import numpy as np

from capture_analysis import clib
from capture_analysis.columns import IntArray
from capture_analysis.two_captures.match_rows import Rows

_FAILED = ctypes.c_size_t(-1).value


def join(a_rows: Rows, b_rows: Rows, horizon_ns: int) -> tuple[IntArray, IntArray]:
    """Pair equal keys of two captures, first in first out; in C (clib/match.c), by ctypes.

    Of those with one key, the earliest of each side are a pair unless too far apart; of two too
    far apart, the earlier has no partner. So the pairs are the same however a capture is cut into
    parts, if what found no partner is tried again with the next part.

    Args:
        a_rows: one capture's packets, of type ROW, in time order.
        b_rows: the other's, on the same clock.
        horizon_ns: two farther apart than this are no pair.

    Returns: rows of a, ascending, and the rows of b that are the same packets.
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
