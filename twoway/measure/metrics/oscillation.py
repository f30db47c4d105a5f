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
# The window is cut into so many bins, whose width is the period's resolution.
BINS = 1 << 16
# A peak is high from this share of the highest.
HIGH = 0.9


def measure(analysis: Analysis, view: QueueView) -> dict[str, float]:
    """Find the period of the queue's length in the steady window."""
    run = analysis.run
    return {"oscillation_period": period_s(view.all_packets, run.steady_ns, run.stop_ns)}


def period_s(levels: Occupancy, start_ns: int, stop_ns: int) -> float:
    """Find the autocorrelation's first high peak beyond its zero, s.

    Lags are up to half the window. A peak is high from nine tenths of the highest, because
    multiples of the period have peaks as high as the period itself.

    Returns: NaN if the queue never changes, or if no lag correlates.
    """
    width_ns = (stop_ns - start_ns) / BINS
    middles = (start_ns + (np.arange(BINS) + 0.5) * width_ns).astype(np.int64)
    length = levels.at(middles).astype(np.float64)
    spectrum = np.abs(np.fft.rfft(length - length.mean(), 2 * BINS)) ** 2
    lags = np.arange(BINS // 2)
    # A longer lag has fewer products: take their mean, not their sum.
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
