"""Jain's index of each second: fairness over short times, which a mean over a run hides.

Two connections that alternate are fair in the long run and unfair in each second. The index is
computed for each whole second of the steady window, over all connections that have data to send in
all of that second; seconds with fewer than two of them, or without goodput, are left out. A run's
series `jain_index` has all seconds.
"""

import math

import numpy as np
from capture_analysis.definition import Definition
from capture_analysis.metrics.fairness import jain_index
from numpy.typing import NDArray

from twoway.measure.analysis import Analysis
from twoway.measure.metric import Scope, estimates
from twoway.measure.shares_by_second import Seconds

JAIN_MEDIAN = Definition(
    "jain_index_median",
    "1",
    "median over seconds of Jain's index of the connections' goodputs",
    "Jain, Chiu, Hawe 1984",
    most=1,
)
JAIN_LEAST = Definition(
    "jain_index_least",
    "1",
    "lowest Jain's index of the connections' goodputs in any second",
    "Jain, Chiu, Hawe 1984",
    most=1,
)


@estimates(Scope.RUN, JAIN_MEDIAN, JAIN_LEAST)
def fairness_by_second(analysis: Analysis) -> tuple[float, float]:
    """Return the median and the lowest index; NaN without such a second.

    NaN, too, where a program sends UDP: its seconds are not counted.
    """
    if analysis.senders:
        return (math.nan, math.nan)
    seconds = analysis.seconds
    found = jain_by_second(seconds)[seconds.begin_ns >= analysis.run.steady_ns]
    found = found[np.isfinite(found)]
    return (float(np.median(found)), float(found.min())) if len(found) else (math.nan, math.nan)


def jain_by_second(seconds: Seconds) -> NDArray[np.float64]:
    """Compute the index of each second; shape (k,), NaN where it is undefined."""
    found = np.full(len(seconds.begin_ns), np.nan)
    for second, sending in enumerate(seconds.sending.T):
        shares = seconds.goodput_bit[sending, second]
        if len(shares) > 1 and shares.any():
            found[second] = jain_index(shares)
    return found
