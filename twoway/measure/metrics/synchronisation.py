"""Two queues in phase or out of phase, and whether their links transmit in turn.

    synchronisation = mean of the correlations of the two queues' lengths in ten parts of the window

It is 1 in phase, -1 out of phase (Zhang, Shenker, Clark 1991, section 4.3), and 0 in neither case;
its error is the standard deviation of the ten correlations over the root of ten. The index has no
meaning if a part is shorter than an oscillation: see `oscillation_period` and `epoch_period`. All
are NaN unless there are two queues.
"""

import math
from itertools import pairwise

import numpy as np
from capture_analysis.definition import Definition
from capture_analysis.metrics.pendulum import (
    BOTH_BUSY,
    NEITHER_BUSY,
    PENDULUM_INDEX,
    QUEUE_CORRELATION,
)

from twoway.measure.analysis import Analysis
from twoway.measure.metric import Scope, estimates
from twoway.measure.queues import Occupancy, correlation, correlation_of, together

SYNCHRONISATION = Definition(
    "synchronisation",
    "1",
    "mean correlation of the two queues' lengths in ten equal parts of the steady window",
    "Zhang, Shenker, Clark 1991",
    least=-1,
    most=1,
)
SYNCHRONISATION_ERROR = Definition(
    "synchronisation_error", "1", "standard error of `synchronisation`, from the parts' spread"
)
PEAK_RATIO = Definition(
    "queue_peak_ratio",
    "1",
    "ratio of the lower peak of the two queues to the higher; 1 if they are equal",
    "Zhang, Shenker, Clark 1991",
    least=0,
    most=1,
)
PARTS = 10


@estimates(Scope.RUN, QUEUE_CORRELATION)
def queue_correlation(analysis: Analysis) -> tuple[float, ...]:
    """Compute Pearson's coefficient over time."""
    queues = _two_queues(analysis)
    if queues is None:
        return (math.nan,)
    return (correlation(*queues, analysis.run.steady_ns, analysis.run.stop_ns),)


@estimates(Scope.RUN, PEAK_RATIO)
def peak_ratio(analysis: Analysis) -> tuple[float, ...]:
    """Compare the peaks in the steady window.

    Fixed windows are in phase if both queues reach the same height (section 4.3.3).
    """
    queues = _two_queues(analysis)
    if queues is None:
        return (math.nan,)
    low, high = sorted(q.peak(analysis.run.steady_ns, analysis.run.stop_ns) for q in queues)
    return (low / high if high else math.nan,)


@estimates(Scope.RUN, SYNCHRONISATION, SYNCHRONISATION_ERROR)
def phase(analysis: Analysis) -> tuple[float, ...]:
    """Compute the index and its error in the steady window.

    NaN unless both queues change in each part.
    """
    queues = _two_queues(analysis)
    if queues is None:
        return math.nan, math.nan
    return synchronisation(*queues, analysis.run.steady_ns, analysis.run.stop_ns)


@estimates(Scope.RUN, PENDULUM_INDEX, BOTH_BUSY, NEITHER_BUSY)
def pendulum(analysis: Analysis) -> tuple[float, ...]:
    """Compute the index, and the shares of time with both links busy and with none.

    The index is NaN if one of the queues is never empty.
    """
    queues = _two_queues(analysis)
    if queues is None:
        return math.nan, math.nan, math.nan
    lasts_ns, levels = together(*queues, analysis.run.steady_ns, analysis.run.stop_ns)
    first, second = (np.minimum(level, 1) for level in levels)
    busy, other, both = (
        int((lasts_ns * each).sum()) / analysis.run.window_ns
        for each in (first, second, first * second)
    )
    return correlation_of(lasts_ns, (first, second)), both, 1 - busy - other + both


def _two_queues(analysis: Analysis) -> tuple[Occupancy, Occupancy] | None:
    """Return both queues' lengths; None unless there are two."""
    lengths = [view.all_packets for view in analysis.queues.values()]
    return (lengths[0], lengths[1]) if len(lengths) == 2 else None


def synchronisation(
    first: Occupancy, second: Occupancy, start_ns: int, stop_ns: int
) -> tuple[float, float]:
    """Compute index and error within a window."""
    edges = np.linspace(start_ns, stop_ns, PARTS + 1).astype(np.int64)
    found = np.array([correlation(first, second, int(a), int(b)) for a, b in pairwise(edges)])
    return float(found.mean()), float(found.std(ddof=1) / math.sqrt(PARTS))
