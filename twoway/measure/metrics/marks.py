"""Packets that a managed queue marks with congestion experienced, instead of dropping them."""

import math

from capture_analysis.definition import Definition

from twoway.measure.analysis import Analysis
from twoway.measure.metric import Scope, estimates
from twoway.measure.queue_view import QueueView
from twoway.measure.run_folder import WHEN

MARKS = Definition(
    "marks", "packets", "number of packets that the queue marked, by the kernel's count", "RFC 3168"
)


@estimates(Scope.QUEUE, MARKS)
def marks(analysis: Analysis, view: QueueView) -> tuple[float]:
    """Count marks from before the traffic to its end; NaN if the queue's qdisc counts none."""
    counts = [
        [
            count
            for qdisc in analysis.run.qdiscs(view.queue.node, when)
            if qdisc.dev == view.queue.interface
            for count in qdisc.marks
        ]
        for when in WHEN
    ]
    return (float(sum(counts[1]) - sum(counts[0])) if counts[1] else math.nan,)
