"""Busy periods of a queue's data, and idle periods of its link.

After Kalampoukas, Varma, Ramakrishnan (1998), section 3.
"""

import math

import numpy as np
from capture_analysis.definition import Definition
from capture_analysis.metrics.busy_periods import (
    BUSY_PERIOD_CYCLE,
    BUSY_PERIOD_SEGMENTS,
    BUSY_PERIODS,
)

from twoway.measure.analysis import Analysis, QueueView
from twoway.measure.metric import Scope, estimates

IDLE_PERIODS = Definition("idle_periods", "1", "stretches of time without a packet in the queue")
IDLE_PERIOD_MEAN = Definition("idle_period_mean", "s", "mean length of an idle period")
IDLE_PERIOD_MAX = Definition("idle_period_max", "s", "longest idle period")


@estimates(Scope.QUEUE, BUSY_PERIODS, BUSY_PERIOD_SEGMENTS, BUSY_PERIOD_CYCLE)
def busy_periods(analysis: Analysis, view: QueueView) -> tuple[float, ...]:
    """Count and measure busy periods that start in the window, less the last."""
    busy = analysis.busy(view)
    segments = busy.segments
    return len(segments), np.median(segments) if len(segments) else math.nan, busy.cycle_s()


@estimates(Scope.QUEUE, IDLE_PERIODS, IDLE_PERIOD_MEAN, IDLE_PERIOD_MAX)
def idle_periods(analysis: Analysis, view: QueueView) -> tuple[float, ...]:
    """Count and measure idle periods that begin and end in the steady window."""
    run = analysis.run
    levels = view.all_packets.within(run.steady_ns, run.stop_ns)
    rows = np.flatnonzero(levels.packets[:-1] == 0)
    lengths_s = (levels.time_ns[rows + 1] - levels.time_ns[rows]) / 1e9
    lengths_s = lengths_s[lengths_s > 0]
    mean_s = float(lengths_s.mean()) if len(lengths_s) else math.nan
    return len(lengths_s), mean_s, lengths_s.max(initial=0)
