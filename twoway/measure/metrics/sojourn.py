"""The sojourn of packets in a queue: from their arrival to the end of their transmission.

As in the queue's length, the packet in transmission counts, so the mean length is the arrival rate
times the mean sojourn (Little's law). The sojourn that CoDel compares with its target (RFC 8289)
ends when the transmission begins.
"""

import math

import numpy as np
from capture_analysis.definition import Definition

from twoway.measure.analysis import Analysis
from twoway.measure.metric import Scope, estimates
from twoway.measure.queue_view import QueueView

SOJOURN_MEDIAN = Definition(
    "sojourn_median", "ms", "median time of packets in the queue, transmission included"
)
SOJOURN_P95 = Definition(
    "sojourn_p95", "ms", "95th percentile of packets' times in the queue, transmission included"
)
SOJOURN_P99 = Definition(
    "sojourn_p99", "ms", "99th percentile of packets' times in the queue, transmission included"
)


@estimates(Scope.QUEUE, SOJOURN_MEDIAN, SOJOURN_P95, SOJOURN_P99)
def sojourn(analysis: Analysis, view: QueueView) -> list[float]:
    """Return quantiles over the packets that left in the steady window; NaN if none did."""
    run, passed = analysis.run, view.passed
    rows = passed.departures
    left_ns = passed.left_ns[rows]
    steady = (left_ns >= run.steady_ns) & (left_ns < run.stop_ns)
    if not steady.any():
        return [math.nan] * 3
    stayed_ns = (left_ns - passed.packets.time_ns[rows])[steady]
    return [float(ms) for ms in np.quantile(stayed_ns / 1e6, (0.5, 0.95, 0.99))]
