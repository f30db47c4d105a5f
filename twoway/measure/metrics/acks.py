"""Acknowledgements per data segment, and lost acknowledgements."""

import math

from twoway.measure.analysis import Analysis, ConnectionView
from twoway.measure.metric import Scope

SCOPE = Scope.CONNECTION
UNITS = {
    "ack_to_data": "1",
    "acks_lost": "acks",
}


def measure(analysis: Analysis, view: ConnectionView) -> dict[str, float]:
    """Count the ACKs that the receiver sent in the steady window."""
    segments = len(analysis.run.steady(view.arrived.data()))
    return {
        "ack_to_data": view.acks_sent / segments if segments else math.nan,
        "acks_lost": view.acks_lost,
    }
