"""Drops by an action behind a queue: their number must fit the profile's probability."""

import math

from twoway.contract.metrics import FidelityRow
from twoway.links.drops import Drops
from twoway.measure import checks
from twoway.measure.analysis import Analysis
from twoway.measure.link_check import QueueCheck
from twoway.measure.queue_view import QueueView
from twoway.measure.queues import repeated
from twoway.measure.real_time import ClockError

# The most standard deviations by which a sound run's number of drops differs from its mean.
_MOST_DEVIATIONS = 6


@QueueCheck
def check(
    analysis: Analysis, direction: str, view: QueueView, error: ClockError | None
) -> list[FidelityRow]:
    """Compare the number of packets lost behind a queue with the profile's probability."""
    del error
    drops = analysis.run.element(view.queue, Drops)
    if not drops:
        return []
    lost = known = 0
    for _, travel in analysis.behind(view.queue):
        sure = ~travel.under_way & ~repeated(travel.sent)
        known, lost = known + int(sure.sum()), lost + int((travel.lost & sure).sum())
    p = 1 / drops.one_in
    off = abs(lost - known * p) / math.sqrt(max(known, 1) * p * (1 - p))
    what = (
        f"{direction}: drops of {known} packets, in standard deviations from one in {drops.one_in}"
    )
    return [checks.row(what, round(off, 2), f"at most {_MOST_DEVIATIONS}", off <= _MOST_DEVIATIONS)]
