"""Round trips of data, from the capture at their sender.

    rtt = time of the ACK that acknowledges first - time of the newest segment it acknowledges

An ACK of data that was sent again has none (Karn, Partridge 1987). Waiting in queues counts, and so
does a delayed ACK's delay if the newest segment waited for it.
"""

import math
from typing import NamedTuple

import numpy as np
from capture_analysis.columns import FLAG_ACK, IntArray, Packets


class RoundTrips(NamedTuple):
    """Round trips of one direction's data.

    Attributes:
        acked_ns: shape (n,), end of each.
        rtt_ns: shape (n,), duration of each.
        again_ns: shape (k,), times at which segments were sent again.
    """

    acked_ns: IntArray
    rtt_ns: IntArray
    again_ns: IntArray


def round_trips(data: Packets, acks: Packets) -> RoundTrips:
    """Find the round trips of a connection's data in the capture at its sender.

    The other end's SYN acknowledges nothing if that end opened the connection.
    """
    acks = acks.where(acks.flags & FLAG_ACK != 0)
    if not len(data):
        return RoundTrips(*[np.zeros(0, dtype=np.int64)] * 3)
    origin = int(data.seq[0])
    begin = unwrap_numbers(data.seq, origin)
    highest = np.maximum.accumulate(begin + data.payload_bytes)
    is_new = highest > np.concatenate(([0], highest[:-1]))
    # The last ACK also covers the FIN after all data.
    acked = np.maximum.accumulate(np.clip(unwrap_numbers(acks.ack, origin), 0, highest[-1]))
    before = np.concatenate(([0], acked))[:-1]
    newest = np.searchsorted(highest[is_new], acked, "right") - 1
    again = np.sort(begin[~is_new])
    clear = np.searchsorted(again, before) == np.searchsorted(again, acked)
    clear &= (acked > before) & (newest >= 0)
    acked_ns = acks.time_ns[clear]
    rtt_ns = acked_ns - data.time_ns[is_new][newest[clear]]
    return RoundTrips(acked_ns, rtt_ns, data.time_ns[~is_new])


def spread_ms(rtt_ns: IntArray) -> list[float]:
    """Return minimum, median, 95th and 99th percentile, ms; NaN without a round trip."""
    if not len(rtt_ns):
        return [math.nan] * 4
    return [float(ms) for ms in np.quantile(rtt_ns / 1e6, (0, 0.5, 0.95, 0.99))]


def unwrap_numbers(numbers: IntArray, origin: int) -> IntArray:
    """Continue 32-bit sequence numbers without end, from an origin; shape (n,)."""
    steps: IntArray = np.asarray(np.diff(numbers.astype(np.int64), prepend=origin), dtype=np.int64)
    return ((steps + (1 << 31)) % (1 << 32) - (1 << 31)).cumsum()
