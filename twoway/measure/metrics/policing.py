"""Packets that a policer drops before a queue."""

import math

from capture_analysis.definition import Definition

from twoway.measure.analysis import Analysis, QueueView
from twoway.measure.metric import Scope, estimates
from twoway.measure.policing import refused_by_policer

POLICED = Definition(
    "policed",
    "1",
    "share of the packets offered to a queue that the policer before it drops",
    "RFC 2475",
    most=1,
)


@estimates(Scope.QUEUE, POLICED)
def policed(analysis: Analysis, view: QueueView) -> tuple[float]:
    """Return the share in the steady window; NaN without a policer."""
    link = analysis.run.link(view.queue)
    if not link or not link.policer:
        return (math.nan,)
    time_ns = view.passed.packets.time_ns
    steady = (time_ns >= analysis.run.steady_ns) & (time_ns < analysis.run.stop_ns)
    refused = refused_by_policer(analysis, view)[steady]
    return (float(refused.mean()) if len(refused) else math.nan,)
