"""Packets that a managed queue marks as having met congestion, where it would drop others."""

from typing import Any

from capture_analysis.definition import Definition

from twoway.measure.analysis import Analysis, QueueView
from twoway.measure.metric import Scope, estimates

MARKS = Definition(
    "marks", "packets", "packets that the queue marked, by the kernel's count", "RFC 3168"
)
# As `tc -s -j qdisc show` calls them: red and choke, and all others.
_NAMES = ("marked", "ecn_mark")


@estimates(Scope.QUEUE, MARKS)
def marks(analysis: Analysis, view: QueueView) -> tuple[float]:
    """Count from before the traffic to its end."""
    node = view.queue.interface.rsplit("-", 1)[0]
    counts = [
        sum(
            _marked(qdisc)
            for qdisc in analysis.run.document(f"qdisc/{node}-{when}.json")
            if qdisc["dev"] == view.queue.interface
        )
        for when in ("before", "after")
    ]
    return (float(counts[1] - counts[0]),)


def _marked(counts: Any) -> int:
    """Add the marks in a qdisc's counts and in those of its parts: a cake has tins."""
    if isinstance(counts, list):
        return sum(map(_marked, counts))
    if not isinstance(counts, dict):
        return 0
    own = sum(int(counts[name]) for name in _NAMES if name in counts)
    return own + sum(map(_marked, counts.values()))
