"""Packets that a queue drops, data and acknowledgements apart."""

from twoway.measure.analysis import Analysis, QueueView
from twoway.measure.metric import Scope

SCOPE = Scope.QUEUE
UNITS = {
    "drops_data": "packets",
    "drops_ack": "packets",
}


def measure(analysis: Analysis, view: QueueView) -> dict[str, float]:
    """Count drops from the start of the capture to the end of traffic."""
    drops = analysis.drops(view)
    data = len(drops.data())
    return {"drops_data": data, "drops_ack": len(drops) - data}
