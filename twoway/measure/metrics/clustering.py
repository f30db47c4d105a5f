"""Clusters: successive data packets of one connection in a queue.

No packet of another connection is between them. A whole window passes as one cluster where every
packet is the answer to an acknowledgement (Zhang, Shenker, Clark 1991, section 3.1).

    clusters_per_window = clusters / sum over packets of 1 / window at the packet's departure

It is 1 if each window is one cluster, whatever its size; less if two windows form one cluster, more
if windows are cut.
"""

import math

import numpy as np
from capture_analysis.definition import Definition

from twoway.measure.analysis import Analysis
from twoway.measure.connection_view import ConnectionView
from twoway.measure.metric import HostError, Scope, estimates

CLUSTERING = Definition(
    "clustering",
    "1",
    "share of a connection's data packets that leave its queue right behind a data "
    "packet of the same connection",
    "Zhang, Shenker, Clark 1991",
    most=1,
)
CLUSTER_MEAN = Definition(
    "cluster_mean",
    "packets",
    "mean number of a connection's data packets that leave in a row, without another "
    "connection's in between",
    "Zhang, Shenker, Clark 1991",
    least=1,
)
CLUSTERS_PER_WINDOW = Definition(
    "clusters_per_window",
    "1",
    "clusters of a connection's data over the windows that it sends; 1 if completely clustered",
    "Zhang, Shenker, Clark 1991",
)


@estimates(
    Scope.CONNECTION,
    CLUSTERING,
    CLUSTER_MEAN,
    CLUSTERS_PER_WINDOW,
    host_errors={CLUSTER_MEAN: HostError.MEAN},
)
def clusters(analysis: Analysis, view: ConnectionView) -> tuple[float, ...]:
    """Return the share of data in a row, the cluster size, and clusters per window."""
    passed, departed = view.forward.passed, analysis.list_departed(view.forward)
    places = analysis.run.rows(departed.lanes, view.connection, forward=True)
    mine = places[passed.is_data[departed.rows[places]]]
    follows, mine = int((np.diff(mine) == 1).sum()), mine[mine > 0]
    packets = len(mine)
    if not packets:
        return math.nan, math.nan, math.nan
    clusters = packets - follows
    left_ns = passed.left_ns[departed.rows[mine]]
    windows = float((1 / np.maximum(view.window.count_at(left_ns), 1)).sum())
    return follows / packets, packets / clusters if clusters else math.nan, clusters / windows
