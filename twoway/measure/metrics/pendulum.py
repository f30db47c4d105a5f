"""Data pendulum: do links of both directions transmit in turn?

    index = correlation over time of (forward link busy) and (reverse link busy)

-1: exactly one link is busy at any time (Heusse, Merritt, Brown, Duda 2011); 0: the links are
independent. capture-analysis has the same measure for two captures; here queues are known exactly.
"""

import math

import numpy as np

from twoway.measure.analysis import Analysis
from twoway.measure.metric import Scope
from twoway.measure.queues import Occupancy, correlation

SCOPE = Scope.RUN
UNITS = {
    "pendulum_index": "1",
    "both_busy": "1",
    "neither_busy": "1",
}


def measure(analysis: Analysis) -> dict[str, float]:
    """Compute the index, and shares of time with both or neither busy.

    NaN unless there are two queues; the index is NaN if one of them is never empty.
    """
    levels = [view.all_packets for view in analysis.queues.values()]
    if len(levels) != 2:
        return dict.fromkeys(UNITS, math.nan)
    steady = (analysis.run.steady_ns, analysis.run.stop_ns)
    first, second = (Occupancy(q.time_ns, np.minimum(q.packets, 1)) for q in levels)
    edges = np.unique(np.concatenate((first.time_ns, second.time_ns)))
    both = Occupancy(edges, first.at(edges) * second.at(edges)).mean(*steady)
    return {
        "pendulum_index": correlation(first, second, *steady),
        "both_busy": both,
        "neither_busy": 1 - first.mean(*steady) - second.mean(*steady) + both,
    }
