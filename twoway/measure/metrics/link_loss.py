"""Losses on a link, behind its queue: on a radio, for example, or where a profile says `loss`.

A data packet was lost there if the capture behind its last queue has it and that at its sink does
not; those of the whole capture count.

    link_loss = packets lost / packets that left the queue
"""

import math

import numpy as np
from capture_analysis.definition import Definition

from twoway.measure.analysis import Analysis, ConnectionView
from twoway.measure.metric import Scope, estimates

LINK_LOSS = Definition(
    "link_loss",
    "1",
    "share of a connection's data packets that the link behind its queue loses",
    "Gilbert 1960",
    most=1,
)
LINK_LOSS_BURST = Definition(
    "link_loss_burst",
    "packets",
    "mean number of a connection's data packets that the link loses one after the other",
    "Gilbert 1960",
    least=1,
)


@estimates(Scope.CONNECTION, LINK_LOSS, LINK_LOSS_BURST)
def link_loss(analysis: Analysis, view: ConnectionView) -> tuple[float, float]:
    """Return the share lost, and the mean length of a burst."""
    lost = analysis.lost_on_link(view.connection)
    if lost is None:
        return 0.0, math.nan
    if not len(lost):
        return math.nan, math.nan
    bursts = int(lost[0]) + int((np.diff(lost.astype(np.int8)) == 1).sum())
    return float(lost.mean()), float(lost.sum()) / bursts if bursts else math.nan
