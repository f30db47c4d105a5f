"""Which packets of two captures are the same: the k-th of a kind here is the k-th there."""

import numpy as np

from capture_analysis.columns import BoolArray, IntArray
from capture_analysis.two_captures.match_rows import Rows

# Key and time of some packets, in time order; columns of one length.
Keyed = tuple[IntArray, IntArray]


def join(a_rows: Rows, b_rows: Rows, horizon_ns: int) -> tuple[IntArray, IntArray]:
    """Pair equal keys of two captures, first in first out.

    Of those with one key, the earliest of each side are a pair unless too far apart; of two too
    far apart, the earlier has no partner. So the pairs are the same however a capture is cut into
    parts, if what found no partner is tried again with the next part.

    Args:
        a_rows: one capture's packets, of type ROW, in time order.
        b_rows: the other's, on the same clock.
        horizon_ns: two farther apart than this are no pair.

    Returns: rows of a, ascending, and the rows of b that are the same packets.
    """
    a, b = ((rows["key"].copy(), rows["time_ns"].copy()) for rows in (a_rows, b_rows))
    return _join(a, b, horizon_ns)


def _join(a: Keyed, b: Keyed, horizon_ns: int) -> tuple[IntArray, IntArray]:
    n = len(a[0])
    order = np.argsort(np.concatenate((a[0], b[0])))
    ordered = np.concatenate((a[0], b[0]))[order]
    # Whether a row has the key of the one before; with one more at the end.
    same = np.concatenate(([False], ordered[1:] == ordered[:-1], [False]))
    # Almost every group is one packet of each capture, side by side.
    two = np.flatnonzero(same[1:-1] & ~same[:-2] & ~same[2:])
    low, high = np.minimum(order[two], order[two + 1]), np.maximum(order[two], order[two + 1])
    both = (low < n) & (high >= n)
    a_rows, b_rows = low[both], high[both] - n
    near = _near(a, b, a_rows, b_rows, horizon_ns)
    a_rows, b_rows = a_rows[near], b_rows[near]
    longer = same[1:-1] & (same[:-2] | same[2:])
    if longer.any():
        members = np.concatenate((longer, [False])) | np.concatenate(([False], longer))
        more_a, more_b = _join_groups(order[members], a, b, horizon_ns)
        a_rows, b_rows = np.concatenate((a_rows, more_a)), np.concatenate((b_rows, more_b))
    by_a = np.argsort(a_rows)
    return a_rows[by_a], b_rows[by_a]


def _near(a: Keyed, b: Keyed, a_rows: IntArray, b_rows: IntArray, horizon_ns: int) -> BoolArray:
    return np.asarray(np.abs(b[1][b_rows] - a[1][a_rows]) <= horizon_ns)


def _join_groups(row: IntArray, a: Keyed, b: Keyed, horizon_ns: int) -> tuple[IntArray, IntArray]:
    """Pair the members of groups of three and more; of `row`, those from len(a) on are b's."""
    n = len(a[0])
    row = np.sort(row)
    key = np.concatenate((a[0], b[0]))[row]
    by_key = np.argsort(key, kind="stable")
    key, row = key[by_key], row[by_key]
    starts = np.flatnonzero(np.concatenate(([True], key[1:] != key[:-1])))
    ends = np.append(starts[1:], len(key))
    group = np.repeat(np.arange(len(starts)), ends - starts)
    of_a = np.add.reduceat((row < n).astype(np.int64), starts)
    # A group's rows of a come before its rows of b, and the k-th faces the k-th.
    first_b = starts + of_a
    rank = np.arange(len(key)) - starts[group]
    faced = np.flatnonzero(rank < np.minimum(of_a, ends - first_b)[group])
    a_rows, b_rows = row[faced], row[faced + of_a[group[faced]]] - n
    near = _near(a, b, a_rows, b_rows, horizon_ns)
    # Where two are too far apart, someone lacks a partner and the others move up.
    uneven = np.unique(group[faced[~near]])
    kept = ~np.isin(group[faced], uneven)
    found_a, found_b = [a_rows[kept]], [b_rows[kept]]
    for g in uneven:
        mine, theirs = row[starts[g] : first_b[g]], row[first_b[g] : ends[g]] - n
        i, j = _two_queues(a[1][mine], b[1][theirs], horizon_ns)
        found_a.append(mine[i])
        found_b.append(theirs[j])
    return np.concatenate(found_a), np.concatenate(found_b)


def _two_queues(a_ns: IntArray, b_ns: IntArray, horizon_ns: int) -> tuple[list[int], list[int]]:
    """Pair the heads of two queues; of two heads too far apart, the earlier leaves alone."""
    i = j = 0
    a_rows, b_rows = [], []
    while i < len(a_ns) and j < len(b_ns):
        delay = b_ns[j] - a_ns[i]
        if abs(delay) <= horizon_ns:
            a_rows.append(i)
            b_rows.append(j)
        i += delay >= -horizon_ns
        j += delay <= horizon_ns
    return a_rows, b_rows
