"""Jitter, overtaking and copies on a link, behind its queue.

They are those of the whole capture, of a connection's data packets between the capture behind their
last queue and that at their sink. The profile says whether a link has any: else none is measured.
"""

import math

import numpy as np
from capture_analysis.definition import Definition

from twoway.measure.analysis import Analysis, ConnectionView
from twoway.measure.metric import Scope, estimates

LINK_JITTER = Definition(
    "link_jitter", "ms", "standard deviation of the times that data packets travel on the link"
)
LINK_OVERTAKING = Definition(
    "link_overtaking",
    "1",
    "share of a connection's data packets that arrive before one that was sent before them",
    most=1,
)
LINK_COPIES = Definition(
    "link_copies", "1", "packets that arrive more than once, in packets that were sent", most=1
)


@estimates(Scope.CONNECTION, LINK_JITTER, LINK_OVERTAKING, LINK_COPIES)
def link_impairments(analysis: Analysis, view: ConnectionView) -> tuple[float, float, float]:
    """Return the standard deviation and the two shares; NaN without any, or without data."""
    last = analysis.queues[view.connection.directions[-1]].queue
    if not analysis.run.impairments(last):
        return math.nan, math.nan, math.nan
    travel = analysis.travel(view.connection)
    arrived = (travel.came_ns >= 0) & (travel.sent.payload_bytes > 0)
    if not arrived.any():
        return math.nan, math.nan, math.nan
    came_ns = travel.came_ns[arrived]
    copies = travel.arrivals - int((travel.came_ns >= 0).sum())
    return (
        float(np.std(came_ns - travel.sent.time_ns[arrived])) / 1e6,
        float((came_ns < np.maximum.accumulate(came_ns)).mean()),
        copies / len(travel.sent),
    )
