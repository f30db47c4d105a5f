"""The period with which a queue's length repeats itself."""

import math

import numpy as np

from twoway.measure.analysis import Analysis, QueueView
from twoway.measure.metric import Scope
from twoway.measure.queues import Occupancy

SCOPE = Scope.QUEUE
UNITS = {
    "oscillation_period": "s",
}
# Bins of the window: the period's resolution.
BINS = 1 << 16
HIGH = 0.9


def measure(analysis: Analysis, view: QueueView) -> dict[str, float]:
    """Of the queue's length in the steady window."""
    run = analysis.run
    return {"oscillation_period": period_s(view.all_packets, run.steady_ns, run.stop_ns)}


def period_s(levels: Occupancy, start_ns: int, stop_ns: int) -> float:
    """The autocorrelation's first high peak beyond its first zero, up to half the window, s.

    High is nine tenths of the highest, which multiples of the period share. NaN if the queue never
    changes, or if no lag correlates.
    """
    width_ns = (stop_ns - start_ns) / BINS
    middles = (start_ns + (np.arange(BINS) + 0.5) * width_ns).astype(np.int64)
    length = levels.at(middles).astype(np.float64)
    spectrum = np.abs(np.fft.rfft(length - length.mean(), 2 * BINS)) ** 2
    lags = np.arange(BINS // 2)
    # Fewer products at longer lags: the mean of them, not their sum.
    found = np.fft.irfft(spectrum)[: len(lags)] / (BINS - lags)
    negative = np.flatnonzero(found < 0)
    if not length.any() or not len(negative):
        return math.nan
    beyond = found[negative[0] :]
    high = beyond >= HIGH * beyond.max()
    if beyond.max() <= 0:
        return math.nan
    first = int(high.argmax())
    stretch = int((~high[first:]).argmax()) or len(high) - first
    peak = first + int(beyond[first : first + stretch].argmax())
    return float((negative[0] + peak) * width_ns / 1e9)
