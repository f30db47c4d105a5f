"""Packets that a queue drops, data and acknowledgements apart."""

from capture_analysis.testbed.analysis import Analysis, QueueView
from capture_analysis.testbed.metric import Scope

SCOPE = Scope.QUEUE
UNITS = {
    "drops_data": "packets",
    "drops_ack": "packets",
}


def measure(analysis: Analysis, view: QueueView) -> dict[str, float]:
    """From the start of the capture to the end of traffic."""
    drops = analysis.drops(view)
    data = len(drops.data())
    return {"drops_data": data, "drops_ack": len(drops) - data}
