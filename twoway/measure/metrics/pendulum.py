"""Data pendulum: do the lines of the two ways transmit in turn instead of together?

    index = correlation over time of (forward line busy) and (reverse line busy)

-1: exactly one is busy at any time (Heusse, Merritt, Brown, Duda 2011), 0: they have nothing to do
with each other. The pair measure of two captures, with queues that are known exactly.
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
    """Of the steady window; undefined unless there are two queues, and both are empty at times."""
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
