"""Packets that a managed queue marks with congestion experienced, instead of dropping them."""

import math
from collections.abc import Iterator
from typing import Any

from capture_analysis.definition import Definition

from twoway.measure.analysis import Analysis
from twoway.measure.metric import Scope, estimates
from twoway.measure.queue_view import QueueView

MARKS = Definition(
    "marks", "packets", "number of packets that the queue marked, by the kernel's count", "RFC 3168"
)
# Names in `tc -s -j qdisc show`: of red and choke, of all others, and of a threshold's marks.
_NAMES = ("marked", "ecn_mark", "ce_mark")


@estimates(Scope.QUEUE, MARKS)
def marks(analysis: Analysis, view: QueueView) -> tuple[float]:
    """Count marks from before the traffic to its end; NaN if the queue's qdisc counts none."""
    node = view.queue.interface.rsplit("-", 1)[0]
    counts = [
        [
            count
            for qdisc in analysis.run.document(f"qdisc/{node}-{when}.json")
            if qdisc["dev"] == view.queue.interface
            for count in _marked(qdisc)
        ]
        for when in ("before", "after")
    ]
    return (float(sum(counts[1]) - sum(counts[0])) if counts[1] else math.nan,)


def _marked(counts: Any) -> Iterator[int]:
    """List the marks counted by a qdisc and by its parts, such as cake's tins."""
    if isinstance(counts, list):
        for each in counts:
            yield from _marked(each)
    elif isinstance(counts, dict):
        yield from (int(counts[name]) for name in _NAMES if name in counts)
        yield from _marked([*counts.values()])
