"""The length of a queue: peaks and mean, plateaus, and the period of its oscillation.

The packet in transmission counts. Plateaus are those of the square wave of Zhang, Shenker, Clark
(1991), figures 8 and 9.
"""

import math

import numpy as np
from capture_analysis.columns import IntArray
from capture_analysis.definition import Definition
from capture_analysis.metrics.queue import OSCILLATION_PERIOD, QUEUE_MEAN, QUEUE_PEAK

from twoway.measure.analysis import Analysis
from twoway.measure.connection_view import ConnectionView
from twoway.measure.metric import HostError, Scope, estimates
from twoway.measure.queue_view import QueueView
from twoway.measure.queues import Occupancy

QUEUE_PEAK_DATA = Definition("queue_peak_data", "packets", "most data packets in the queue")
QUEUE_P95 = Definition(
    "queue_p95", "packets", "95th percentile over time of the packets in the queue"
)
QUEUED_MEAN = Definition(
    "queued_mean", "packets", "time average of a connection's data in its bottleneck's queue"
)
PLATEAU_HIGH = Definition(
    "plateau_high",
    "packets",
    "median height of plateaus (within a packet for three transmissions) above both neighbours",
    "Zhang, Shenker, Clark 1991",
)
PLATEAU_LOW = Definition(
    "plateau_low",
    "packets",
    "median height of the plateaus below both neighbours",
    "Zhang, Shenker, Clark 1991",
)
# Number of bins of the window; their width is the period's resolution.
BINS = 1 << 16
# A peak is high if it reaches this share of the highest.
HIGH = 0.9
# Least length of a plateau, in transmissions of data: a queue that rises or falls stays within one
# packet for two transmissions.
LEAST_TRANSMISSIONS = 3


@estimates(
    Scope.QUEUE,
    QUEUE_PEAK,
    QUEUE_PEAK_DATA,
    QUEUE_MEAN,
    QUEUE_P95,
    host_errors={
        QUEUE_PEAK: HostError.LEVEL,
        QUEUE_PEAK_DATA: HostError.LEVEL,
        QUEUE_MEAN: HostError.MEAN,
    },
)
def levels(analysis: Analysis, view: QueueView) -> tuple[float, ...]:
    """Return peaks, mean and 95th percentile in the steady window; NaN if a router cut packets."""
    if analysis.cuts(view.queue):
        return (math.nan,) * 4
    steady = (analysis.run.steady_ns, analysis.run.stop_ns)
    length, data = view.all_packets, view.data_packets
    return (
        length.peak(*steady),
        data.peak(*steady),
        length.mean(*steady),
        length.quantile(0.95, *steady),
    )


@estimates(Scope.CONNECTION, QUEUED_MEAN, host_errors={QUEUED_MEAN: HostError.MEAN})
def queued_packets(analysis: Analysis, view: ConnectionView) -> tuple[float, ...]:
    """Average the connection's queued data packets over the steady window."""
    return (view.queued.mean(analysis.run.steady_ns, analysis.run.stop_ns),)


@estimates(Scope.QUEUE, OSCILLATION_PERIOD)
def oscillation(analysis: Analysis, view: QueueView) -> tuple[float, ...]:
    """Find the period of the queue's length in the steady window."""
    return (period_s(view.all_packets, analysis.run.steady_ns, analysis.run.stop_ns),)


@estimates(
    Scope.QUEUE,
    PLATEAU_HIGH,
    PLATEAU_LOW,
    host_errors=dict.fromkeys((PLATEAU_HIGH, PLATEAU_LOW), HostError.LEVEL),
)
def plateau_levels(analysis: Analysis, view: QueueView) -> tuple[float, ...]:
    """Return the median of plateaus above both neighbours, and of those below."""
    run = analysis.run
    data = view.passed.packets.data().frame_bytes
    if not len(data):
        return math.nan, math.nan
    least_ns = LEAST_TRANSMISSIONS * int(view.queue.service_ns(int(data.max())))
    height = plateaus(view.all_packets.cut_out(run.steady_ns, run.stop_ns), least_ns)
    before, here, after = height[:-2], height[1:-1], height[2:]
    high, low = (here > before) & (here > after), (here < before) & (here < after)
    return (
        float(np.median(here[high])) if high.any() else math.nan,
        float(np.median(here[low])) if low.any() else math.nan,
    )


def period_s(length: Occupancy, start_ns: int, stop_ns: int) -> float:
    """Find the autocorrelation's first high peak beyond its zero, s.

    Lags are up to half the window. A peak is high from nine tenths of the highest, because
    multiples of the period have peaks as high as the period's own.

    Returns: NaN if the queue never changes, or if no lag correlates.
    """
    width_ns = (stop_ns - start_ns) / BINS
    middles = (start_ns + (np.arange(BINS) + 0.5) * width_ns).astype(np.int64)
    packets = length.count_at(middles).astype(np.float64)
    spectrum = np.abs(np.fft.rfft(packets - packets.mean(), 2 * BINS)) ** 2
    lags = np.arange(BINS // 2)
    # A longer lag has fewer products: take their mean, not their sum.
    found = np.fft.irfft(spectrum)[: len(lags)] / (BINS - lags)
    negative = np.flatnonzero(found < 0)
    if not packets.any() or not len(negative):
        return math.nan
    beyond = found[negative[0] :]
    high = beyond >= HIGH * beyond.max()
    if beyond.max() <= 0:
        return math.nan
    first = int(high.argmax())
    stretch = int((~high[first:]).argmax()) or len(high) - first
    peak = first + int(beyond[first : first + stretch].argmax())
    return float((negative[0] + peak) * width_ns / 1e9)


def plateaus(length: Occupancy, least_ns: int) -> IntArray:
    """Find plateaus: stretches in which a queue's length changes by at most one.

    Args:
        length: the queue's length over time.
        least_ns: the least length of a plateau.

    Returns: shape (k,), the highest level of each plateau; equal neighbours count once.
    """
    starts = _stretches(length.packets)
    if len(starts) < 2:
        return np.zeros(0, dtype=np.int64)
    heights = np.maximum.reduceat(length.packets[: starts[-1]], starts[:-1])
    heights = heights[np.diff(length.time_ns[starts]) >= least_ns]
    return np.asarray(heights[np.diff(heights, prepend=-1) != 0])


def _stretches(levels: IntArray) -> IntArray:
    """Find the first rows of maximal stretches in which the length changes by at most one.

    From a row of level v, a stretch continues while all levels are v or v + 1, or all are v or v -
    1. Two runs begin there, one for each pair of levels; the stretch ends with the later run.
    """
    rows = len(levels)
    following = np.zeros(rows + 1, dtype=np.int64)
    for pair in (levels >> 1, (levels + 1) >> 1):
        ends = np.append(np.flatnonzero(np.diff(pair)) + 1, rows)
        following[:-1] = np.maximum(following[:-1], np.repeat(ends, np.diff(ends, prepend=0)))
    following[-1] = rows
    # Doubling `following` finds n starts in log2(n) rounds, not in n.
    starts = np.zeros(min(rows, 1), dtype=np.int64)
    while len(starts) and starts[-1] < rows:
        starts = np.concatenate((starts, following[starts]))
        following = following[following]
    return np.asarray(starts[starts < rows])
