"""A connection's share of its bottleneck: its lowest value, and the time until it is fair.

    share = goodput in a second / goodput of all connections with the same slowest queue

Seconds are whole, counted from the start of traffic, and the connection has data to send in all of
each. The share is fair in a second if it is within a tenth of 1/n, where n connections have data to
send: delta = 0.1 in the delta-fair convergence time of RFC 5166. That time begins with the latest
start of the connections that share the queue then, so it is equal for newcomers and others.
"""

import math

import numpy as np
from capture_analysis.definition import Definition

from twoway.measure.analysis import Analysis
from twoway.measure.connection_view import ConnectionView
from twoway.measure.metric import Scope, estimates

SHARE_LEAST = Definition(
    "share_least",
    "1",
    "lowest share, in any second of steady traffic, of the goodput of all connections "
    "with the same slowest queue",
    most=1,
)
CONVERGENCE_TIME = Definition(
    "convergence_time",
    "s",
    "time from the latest start to the first second with a share within 10 % of an equal one",
    "RFC 5166",
)
DELTA = 0.1


@estimates(Scope.CONNECTION, SHARE_LEAST)
def share_least(analysis: Analysis, view: ConnectionView) -> tuple[float]:
    """Return the lowest share; NaN without a whole second that has goodput.

    NaN, too, where a program sends UDP: its seconds are not counted.
    """
    if analysis.senders:
        return (math.nan,)
    seconds = analysis.seconds
    share = seconds.share(view.connection)[seconds.begin_ns >= analysis.run.steady_ns]
    share = share[np.isfinite(share)]
    return (float(share.min()) if len(share) else math.nan,)


@estimates(Scope.CONNECTION, CONVERGENCE_TIME)
def convergence_time(analysis: Analysis, view: ConnectionView) -> tuple[float]:
    """Return the time; NaN if the share is never fair, or the connection always alone.

    NaN, too, where a program sends UDP: its seconds are not counted.
    """
    if analysis.senders:
        return (math.nan,)
    seconds = analysis.seconds
    rivals = seconds.sending & seconds.rivals(view.connection)[:, np.newaxis]
    count = rivals.sum(axis=0)
    off = np.abs(seconds.share(view.connection) * count - 1)
    fair = np.flatnonzero((count > 1) & (off <= DELTA))
    if not len(fair):
        return (math.nan,)
    first = fair[0]
    sharing = (
        each for each, here in zip(seconds.connections, rivals[:, first], strict=True) if here
    )
    return (float(seconds.begin_ns[first] - max(each.start_ns for each in sharing)) / 1e9,)
