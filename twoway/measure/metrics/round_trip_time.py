"""Round trips and retransmissions of a connection, from the capture at its sender.

    rtt = time of the ACK that acknowledges first - time of the newest segment it acknowledges

An ACK of data that were sent again has none (Karn, Partridge 1987). Waiting in queues counts, and a
delayed ACK's delay where the newest segment waited for it.
"""

import math

import numpy as np
from capture_analysis.columns import IntArray
from capture_analysis.metrics.retransmissions import RETRANSMISSIONS
from capture_analysis.metrics.round_trip_time import RTT_MEDIAN, RTT_MIN, RTT_P95

from twoway.measure.analysis import Analysis, ConnectionView
from twoway.measure.metric import Scope, estimates

# Of the round trips' minimum, median and 95th percentile.
QUANTILES = (0.0, 0.5, 0.95)


@estimates(Scope.CONNECTION, RTT_MIN, RTT_MEDIAN, RTT_P95, RETRANSMISSIONS)
def round_trips(analysis: Analysis, view: ConnectionView) -> tuple[float, ...]:
    """Measure the ACKs that arrive, and count the segments sent again, in the steady window."""
    run, data, acks = analysis.run, view.sent.data(), view.acks_in
    if not len(data):
        return math.nan, math.nan, math.nan, 0
    begin = unwrapped(data.seq, int(data.seq[0]))
    highest = np.maximum.accumulate(begin + data.payload_bytes)
    is_new = highest > np.concatenate(([0], highest[:-1]))
    steady = (data.time_ns >= run.steady_ns) & (data.time_ns < run.stop_ns)
    acked = np.maximum.accumulate(np.maximum(unwrapped(acks.ack, int(data.seq[0])), 0))
    before = np.concatenate(([0], acked[:-1]))
    newest = np.searchsorted(highest[is_new], acked, side="right") - 1
    again = np.sort(begin[~is_new])
    clear = np.searchsorted(again, before) == np.searchsorted(again, acked)
    clear &= (acked > before) & (newest >= 0)
    clear &= (acks.time_ns >= run.steady_ns) & (acks.time_ns < run.stop_ns)
    rtt_ms = (acks.time_ns[clear] - data.time_ns[is_new][newest[clear]]) / 1e6
    found = [float(np.quantile(rtt_ms, q)) if len(rtt_ms) else math.nan for q in QUANTILES]
    return (*found, int((~is_new & steady).sum()))


def unwrapped(numbers: IntArray, origin: int) -> IntArray:
    """Count sequence numbers of 32 bits from an origin on, with no end; shape (n,)."""
    steps: IntArray = np.asarray(np.diff(numbers.astype(np.int64), prepend=origin), dtype=np.int64)
    return ((steps + (1 << 31)) % (1 << 32) - (1 << 31)).cumsum()
