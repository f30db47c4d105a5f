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
from twoway.measure.queues import Occupancy

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


@estimates(
    Scope.RUN,
    *(QUEUE_CORRELATION, PEAK_RATIO, SYNCHRONISATION, SYNCHRONISATION_ERROR),
    *(PENDULUM_INDEX, BOTH_BUSY, NEITHER_BUSY),
)
def phase(analysis: Analysis) -> tuple[float, ...]:
    """Compare the two queues' lengths in the steady window.

    The ratio of the peaks tells whether both queues reach the same height, as they do with fixed
    windows in phase (section 4.3.3). The index is NaN unless both queues change in each part, and
    the pendulum's if one of the queues is never empty.
    """
    lengths = [view.all_packets for view in analysis.queues.values()]
    if len(lengths) != 2:
        return (math.nan,) * 7
    steady = (analysis.run.steady_ns, analysis.run.stop_ns)
    sums = lengths[0].sum_beside(lengths[1], *steady)
    low, high = sorted(length.peak(*steady) for length in lengths)
    one, other, both = (
        busy / analysis.run.window_ns for busy in (sums.x_busy, sums.y_busy, sums.both_busy)
    )
    return (
        sums.correlation(),
        low / high if high else math.nan,
        *synchronisation(lengths[0], lengths[1], *steady),
        sums.busy_correlation(),
        both,
        1 - one - other + both,
    )


def synchronisation(
    first: Occupancy, second: Occupancy, start_ns: int, stop_ns: int
) -> tuple[float, float]:
    """Compute index and error within a window."""
    edges = np.linspace(start_ns, stop_ns, PARTS + 1).astype(np.int64)
    parts = [first.sum_beside(second, *part) for part in pairwise(edges.tolist())]
    found = np.array([part.correlation() for part in parts])
    return float(found.mean()), float(found.std(ddof=1) / math.sqrt(PARTS))
