"""Completion times of transfers: from a connection's start to the arrival of its last byte.

A connection that is set up at its start (`connect: at-start`) has its handshake within that time. A
transfer that is not complete when traffic ends has no time, and does not count in the quantiles.
"""

import math

import numpy as np
from capture_analysis.definition import Definition

from twoway.measure.analysis import Analysis
from twoway.measure.connection_view import ConnectionView
from twoway.measure.metric import Scope, estimates

COMPLETION_TIME = Definition(
    "completion_time", "s", "from a transfer's start to the arrival of its last byte"
)
COMPLETION_TIME_MEDIAN = Definition(
    "completion_time_median", "s", "median of the completion times of all complete transfers"
)
COMPLETION_TIME_P95 = Definition(
    "completion_time_p95", "s", "95th percentile of the completion times of complete transfers"
)
TRANSFERS_COMPLETE = Definition(
    "transfers_complete", "1", "share of the transfers that are complete when traffic ends", most=1
)


@estimates(Scope.CONNECTION, COMPLETION_TIME)
def completion_time(analysis: Analysis, view: ConnectionView) -> tuple[float]:
    """Return the time; NaN if unlimited or not complete."""
    del analysis
    if view.completed_ns is None:
        return (math.nan,)
    return ((view.completed_ns - view.connection.start_ns) / 1e9,)


@estimates(Scope.RUN, COMPLETION_TIME_MEDIAN, COMPLETION_TIME_P95, TRANSFERS_COMPLETE)
def completion_times(analysis: Analysis) -> tuple[float, float, float]:
    """Return median and 95th percentile over all transfers, and the share that is complete."""
    transfers = [
        v for v in analysis.connections.values() if v.connection.transfer_bytes is not None
    ]
    times = np.array([completion_time.measure(analysis, view)[0] for view in transfers])
    complete = times[np.isfinite(times)]
    if not len(complete):
        return math.nan, math.nan, 0.0 if transfers else math.nan
    median, late = np.quantile(complete, [0.5, 0.95])
    return float(median), float(late), len(complete) / len(transfers)
