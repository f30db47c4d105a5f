"""Jitter, overtaking and copies on a link, behind its queue.

They are measured over the whole capture, on a connection's data packets between the capture behind
their last queue and that at their sink. They are NaN unless the profile has such effects.
"""

import math

import numpy as np
from capture_analysis.definition import Definition

from twoway.contract.metrics import FidelityRow
from twoway.links.element import Delay
from twoway.links.impairments import Impairments
from twoway.measure import checks
from twoway.measure.analysis import Analysis
from twoway.measure.connection_view import ConnectionView
from twoway.measure.metric import Scope, estimates
from twoway.measure.queue_view import QueueView
from twoway.measure.queues import mark_copies
from twoway.measure.real_time import ClockError

LINK_JITTER = Definition(
    "link_jitter", "ms", "standard deviation of the times that data packets travel on the link"
)
LINK_OVERTAKING = Definition(
    "link_overtaking",
    "1",
    "share of a connection's data packets that arrive before one that was sent before them",
    most=1,
)
LINK_COPIES = Definition("link_copies", "1", "share of packets that arrive more than once", most=1)


@estimates(Scope.CONNECTION, LINK_JITTER, LINK_OVERTAKING, LINK_COPIES)
def link_impairments(analysis: Analysis, view: ConnectionView) -> tuple[float, float, float]:
    """Return the deviation and the two shares; NaN without such effects, or without data."""
    last = analysis.queues[view.connection.directions[-1]].queue
    if not analysis.run.element(last, Impairments):
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


@checks.QueueCheck
def check(
    analysis: Analysis, direction: str, view: QueueView, error: ClockError | None
) -> list[FidelityRow]:
    """Count packets outside the jitter's range, except reordered ones, which have no delay."""
    del error
    impairments = analysis.run.element(view.queue, Impairments)
    if not impairments:
        return []
    jitter_ns = impairments.jitter_ns
    changing = analysis.run.element(view.queue, Delay)
    least = (changing.shortest_ns if changing else view.queue.delay_ns) - jitter_ns
    most = view.queue.delay_ns + jitter_ns
    total = odd = 0
    for _, travel in analysis.follow_behind(view.queue):
        arrived = travel.came_ns >= 0
        if impairments.duplicate_percent or impairments.reorder_percent:
            # A copy may be confused with the next packet that looks like it, and so may packets
            # that look alike and overtake one another, such as pure ACKs and resets.
            arrived &= ~mark_copies(travel.sent)
        sent_ns, came_ns = travel.sent.time_ns[arrived], travel.came_ns[arrived]
        latest = sent_ns + most
        if changing or (jitter_ns and not impairments.jitter_reorders):
            latest = np.maximum.accumulate(latest)  # behind a packet that was sent earlier
        good = (came_ns >= sent_ns + least) & (came_ns <= latest)
        if impairments.reorder_percent:
            good |= came_ns == sent_ns
        total, odd = total + len(good), odd + int((~good).sum())
    what = f"{direction}: packets of {total} that arrived too early or too late"
    return [checks.row(what, odd, "0", odd == 0)]
