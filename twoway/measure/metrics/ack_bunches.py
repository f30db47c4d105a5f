"""Bunches: acknowledgements that travel back to back."""

import math

from capture_analysis import ack_compression

from twoway.measure.analysis import Analysis, ConnectionView
from twoway.measure.metric import Scope

SCOPE = Scope.CONNECTION
UNITS = {
    "ack_bunch_mean": "acks",
    "ack_bunch_max": "acks",
    "ack_bunch_max_sent": "acks",
}


def measure(analysis: Analysis, view: ConnectionView) -> dict[str, float]:
    """Return mean and largest bunch on arrival, and the largest as sent."""
    del analysis
    arrived = ack_compression.bunch_sizes(view.acks.arrived_ns, view.ack_service_ns)
    sent = ack_compression.bunch_sizes(view.acks.sent_ns, view.ack_service_ns)
    return {
        "ack_bunch_mean": arrived.mean() if len(arrived) else math.nan,
        "ack_bunch_max": arrived.max(initial=0),
        "ack_bunch_max_sent": sent.max(initial=0),
    }
