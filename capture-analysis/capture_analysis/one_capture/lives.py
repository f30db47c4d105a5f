"""Columns and bits of struct ca_life in clib/life.h, a row for each connection."""

from enum import IntFlag

import numpy as np

from capture_analysis.columns import BoolArray, IntArray

NUMBERS = 42
SEEN, TIME, SYN, CONNECT, DATA = 0, 2, 3, 5, slice(7, 9)
# What a connection waits for: the application of half 0, of half 1, the handshake, data sent again,
# a window of 0, the network.
WAITS = 6
# For each wait: the sum of its stalls, the longest, and the begin of that.
STALLED, LONGEST, BEGUN = slice(12, 18), slice(18, 24), slice(24, 30)
# Twice the number of TLS's parts that were seen, plus the client's half; and their times.
TLS, TLS_TIMES = 30, slice(31, 35)


class Life(IntFlag):
    """Bits of `seen`; FIN, RST, DATA and HEARD are those of half 0."""

    SYN, ANSWERED, CONNECTED, FIN, RST, DATA, LAST = 1, 2, 4, 8, 32, 128, 512
    REPAIRING, HEARD = 1024, 2048


def tls_parts(rows: IntArray) -> IntArray:
    """Return the times between the parts of TLS's handshake, ns, (n, 3); -1 if not reached.

    Args:
        rows: shape (n, NUMBERS).
    """
    reached = (rows[:, TLS] >> 1)[:, None] > [1, 2, 3]
    return np.where(reached, np.maximum(np.diff(rows[:, TLS_TIMES], axis=1), 0), -1)


def one_sided(seen: IntArray) -> BoolArray:
    """Mark the connections that lack the packets of one end.

    Data sent again without progress up to the end are those of an end that is not answered.
    """
    found: BoolArray = ((seen & seen >> 1 & Life.HEARD) == 0) & ((seen & Life.REPAIRING) == 0)
    return found


def failed_connects(seen: IntArray) -> tuple[BoolArray, BoolArray]:
    """Mark the connects that the other end reset, and those that it left without an answer.

    Args:
        seen: a column SEEN. Half 0 sent the SYN: its own reset refuses nothing.
    """
    failed = ((seen & Life.SYN) != 0) & ((seen & Life.CONNECTED) == 0)
    refused = failed & ((seen & Life.RST << 1) != 0)
    # A client that only probes the port resets the connection after its answer.
    probed = ((seen & Life.ANSWERED) != 0) & ((seen & Life.RST) != 0)
    return refused, failed & ~refused & ~probed
