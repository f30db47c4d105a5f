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

from twoway.measure.analysis import Analysis
from twoway.measure.busy_periods import busy_peaks, busy_periods, growth
from twoway.measure.metric import Scope, estimates
from twoway.measure.queue_view import QueueView

BUSY_PEAK_HIGH = Definition(
    "busy_peak_high",
    "packets",
    "most data packets in the queue during a busy period: the higher of the medians of "
    "odd and even ones",
    "Kalampoukas, Varma, Ramakrishnan 1998",
)
BUSY_PEAK_LOW = Definition(
    "busy_peak_low",
    "packets",
    "most data packets in the queue during a busy period: the lower of the medians of "
    "odd and even ones",
    "Kalampoukas, Varma, Ramakrishnan 1998",
)
BUSY_PERIOD_GROWTH = Definition(
    "busy_period_growth",
    "1",
    "ratio of the segments of a busy period to those of the one before, median until the "
    "first of the longest",
    "Kalampoukas, Varma, Ramakrishnan 1998, section 2.2",
)
IDLE_PERIODS = Definition("idle_periods", "1", "number of intervals without a packet in the queue")
IDLE_PERIOD_MEAN = Definition("idle_period_mean", "s", "mean length of an idle period")
IDLE_PERIOD_MAX = Definition("idle_period_max", "s", "longest idle period")


@estimates(Scope.QUEUE, BUSY_PERIODS, BUSY_PERIOD_SEGMENTS, BUSY_PERIOD_CYCLE)
def clusters(analysis: Analysis, view: QueueView) -> tuple[float, ...]:
    """Count and measure the busy periods that start in the window, without the last."""
    busy = analysis.busy(view)
    segments = busy.segments
    return len(segments), np.median(segments) if len(segments) else math.nan, busy.cycle_s()


@estimates(Scope.QUEUE, BUSY_PEAK_HIGH, BUSY_PEAK_LOW)
def alternating_peaks(analysis: Analysis, view: QueueView) -> tuple[float, ...]:
    """Return the queue's two peaks where busy periods alternate (Lemma 2).

    Both are NaN with fewer than two busy periods.
    """
    run = analysis.run
    peaks = busy_peaks(view.passed, view.data_packets, run.steady_ns, run.stop_ns)
    if len(peaks) < 2:
        return math.nan, math.nan
    medians = float(np.median(peaks[::2])), float(np.median(peaks[1::2]))
    return max(medians), min(medians)


@estimates(Scope.QUEUE, BUSY_PERIOD_GROWTH)
def start_up(analysis: Analysis, view: QueueView) -> tuple[float, ...]:
    """Return the growth of busy periods from the start of traffic, whatever the steady window.

    NaN if no later one is longer than the first.
    """
    run = analysis.run
    return (growth(busy_periods(view.passed, run.start_ns, run.stop_ns).segments),)


@estimates(Scope.QUEUE, IDLE_PERIODS, IDLE_PERIOD_MEAN, IDLE_PERIOD_MAX)
def idle_periods(analysis: Analysis, view: QueueView) -> tuple[float, ...]:
    """Count and measure idle periods that begin and end in the steady window."""
    run = analysis.run
    levels = view.all_packets.cut_out(run.steady_ns, run.stop_ns)
    rows = np.flatnonzero(levels.packets[:-1] == 0)
    lengths_s = (levels.time_ns[rows + 1] - levels.time_ns[rows]) / 1e9
    lengths_s = lengths_s[lengths_s > 0]
    mean_s = float(lengths_s.mean()) if len(lengths_s) else math.nan
    return len(lengths_s), mean_s, lengths_s.max(initial=0)
