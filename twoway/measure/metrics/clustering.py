"""Clusters: successive data packets of one connection in a queue.

No packet of another connection is between them. A whole window passes as one cluster where every
packet is the answer to an acknowledgement (Zhang et al. 1991, section 3.1).
"""

import math

import numpy as np

from twoway.measure.analysis import Analysis, ConnectionView
from twoway.measure.metric import Scope

SCOPE = Scope.CONNECTION
UNITS = {
    "clustering": "1",
    "cluster_mean": "packets",
}


def measure(analysis: Analysis, view: ConnectionView) -> dict[str, float]:
    """Return the share of data right behind its own, and cluster size."""
    run, passed = analysis.run, view.forward.passed
    rows = passed.departures
    rows = rows[(passed.left_ns[rows] >= run.steady_ns) & (passed.left_ns[rows] < run.stop_ns)]
    mine = (passed.is_data & run.belongs(passed.packets, view.connection, forward=True))[rows]
    follows = mine[1:] & mine[:-1]
    packets = int(mine[1:].sum())
    clusters = packets - int(follows.sum())
    return {
        "clustering": float(follows.sum() / packets) if packets else math.nan,
        "cluster_mean": float(np.divide(packets, clusters)) if clusters else math.nan,
    }
