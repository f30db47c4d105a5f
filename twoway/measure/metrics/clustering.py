"""Clusters: successive data packets of one connection in a queue.

No packet of another connection is between them. A whole window passes as one cluster where every
packet is the answer to an acknowledgement (Zhang, Shenker, Clark 1991, section 3.1).
"""

import math

from capture_analysis.definition import Definition

from twoway.measure.analysis import Analysis, ConnectionView
from twoway.measure.metric import Scope, estimates

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


@estimates(Scope.CONNECTION, CLUSTERING, CLUSTER_MEAN)
def clusters(analysis: Analysis, view: ConnectionView) -> tuple[float, ...]:
    """Return the share of data right behind its own, and cluster size."""
    run, passed = analysis.run, view.forward.passed
    rows = passed.departures
    rows = rows[(passed.left_ns[rows] >= run.steady_ns) & (passed.left_ns[rows] < run.stop_ns)]
    mine = (passed.is_data & run.belongs(passed.packets, view.connection, forward=True))[rows]
    follows = int((mine[1:] & mine[:-1]).sum())
    packets = int(mine[1:].sum())
    if not packets:
        return math.nan, math.nan
    return follows / packets, packets / (packets - follows) if packets > follows else math.nan
