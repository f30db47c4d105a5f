"""Clusters: successive data packets of one connection in a queue.

No packet of another connection is between them. A whole window passes as one cluster where every
packet is the answer to an acknowledgement (Zhang, Shenker, Clark 1991, section 3.1).

    clusters_per_window = clusters / sum over packets of 1 / window at the packet's departure

1 if each window is one cluster, whatever its size; two windows in a row make it less, windows that
are cut more.
"""

import math

import numpy as np
from capture_analysis.definition import Definition

from twoway.measure.analysis import Analysis, ConnectionView
from twoway.measure.metric import Scope, estimates
from twoway.measure.metrics.window_phase import window

CLUSTERING = Definition(
    "clustering",
    "1",
    "share of a connection's data that leaves its queue right behind its own",
    "Zhang, Shenker, Clark 1991",
    most=1,
)
CLUSTER_MEAN = Definition(
    "cluster_mean",
    "packets",
    "mean number of a connection's data packets that leave with nothing of another in between",
    "Zhang, Shenker, Clark 1991",
    least=1,
)
CLUSTERS_PER_WINDOW = Definition(
    "clusters_per_window",
    "1",
    "clusters of a connection's data over the windows that it sends; 1 if completely clustered",
    "Zhang, Shenker, Clark 1991",
)


@estimates(Scope.CONNECTION, CLUSTERING, CLUSTER_MEAN, CLUSTERS_PER_WINDOW)
def clusters(analysis: Analysis, view: ConnectionView) -> tuple[float, ...]:
    """Return the share of data right behind its own, cluster size, clusters per window."""
    run, passed = analysis.run, view.forward.passed
    rows = passed.departures
    rows = rows[(passed.left_ns[rows] >= run.steady_ns) & (passed.left_ns[rows] < run.stop_ns)]
    mine = (passed.is_data & run.belongs(passed.packets, view.connection, forward=True))[rows]
    follows = int((mine[1:] & mine[:-1]).sum())
    packets = int(mine[1:].sum())
    if not packets:
        return math.nan, math.nan, math.nan
    clusters = packets - follows
    left_ns = passed.left_ns[rows][1:][mine[1:]]
    windows = float((1 / np.maximum(window(run, view).at(left_ns), 1)).sum())
    return follows / packets, packets / clusters if clusters else math.nan, clusters / windows
