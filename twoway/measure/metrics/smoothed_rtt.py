"""The kernel's own estimate of a connection's round trip, which paces and times its sender.

This is `srtt` of RFC 6298 in the samples of TCP_INFO of the steady window. It follows the round
trips that captures show with a gain of 1/8, and so varies less.
"""

import math

import numpy as np
from capture_analysis.definition import Definition

from twoway.measure.analysis import Analysis
from twoway.measure.connection_view import ConnectionView
from twoway.measure.metric import Scope, estimates

SMOOTHED_RTT_MEDIAN = Definition(
    "smoothed_rtt_median", "ms", "median of the kernel's smoothed round-trip time", "RFC 6298"
)
SMOOTHED_RTT_P95 = Definition(
    "smoothed_rtt_p95", "ms", "95th percentile of the kernel's smoothed round-trip time", "RFC 6298"
)
SMOOTHED_RTT_P99 = Definition(
    "smoothed_rtt_p99", "ms", "99th percentile of the kernel's smoothed round-trip time", "RFC 6298"
)


@estimates(Scope.CONNECTION, SMOOTHED_RTT_MEDIAN, SMOOTHED_RTT_P95, SMOOTHED_RTT_P99)
def smoothed_rtt(analysis: Analysis, view: ConnectionView) -> list[float]:
    """Return quantiles over the samples of the steady window; NaN without one."""
    run = analysis.run
    sampled_ns, samples = analysis.samples_of(view.connection)
    rtt_us = samples["rtt_us"][(sampled_ns >= run.steady_ns) & (sampled_ns < run.stop_ns)]
    if not len(rtt_us):
        return [math.nan] * 3
    return [float(ms) for ms in np.quantile(rtt_us / 1e3, (0.5, 0.95, 0.99))]
