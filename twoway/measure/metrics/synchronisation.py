"""In phase or out of phase: a signed index, with its uncertainty.

    index = correlation of the two queues' lengths over time, its error by batch means

1 in phase, -1 out of phase (Zhang et al. 1991, section 4.3), 0 neither. The window is cut into ten
parts of equal length; the error is the standard deviation of their correlations over the root of
ten. The index means nothing if a part is shorter than an oscillation: see `epoch_period`.
"""

import math
from itertools import pairwise

import numpy as np

from twoway.measure.analysis import Analysis
from twoway.measure.metric import Scope
from twoway.measure.queues import Occupancy, correlation

SCOPE = Scope.RUN
UNITS = {
    "synchronisation": "1",
    "synchronisation_error": "1",
}
PARTS = 10


def measure(analysis: Analysis) -> dict[str, float]:
    """Compute the index and its error in the steady window.

    NaN unless there are two queues, and both change in each part.
    """
    levels = [view.all_packets for view in analysis.queues.values()]
    if len(levels) != 2:
        return dict.fromkeys(UNITS, math.nan)
    run, (first, second) = analysis.run, levels
    found = synchronisation(first, second, run.steady_ns, run.stop_ns)
    return dict(zip(UNITS, found, strict=True))


def synchronisation(
    first: Occupancy, second: Occupancy, start_ns: int, stop_ns: int
) -> tuple[float, float]:
    """Compute index and error within a window."""
    edges = np.linspace(start_ns, stop_ns, PARTS + 1).astype(np.int64)
    found = np.array([correlation(first, second, int(a), int(b)) for a, b in pairwise(edges)])
    return float(found.mean()), float(found.std(ddof=1) / math.sqrt(PARTS))
