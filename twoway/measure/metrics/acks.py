"""Acknowledgements: how many to a segment, and how many were lost."""

import math

from twoway.measure.analysis import Analysis, ConnectionView
from twoway.measure.metric import Scope

SCOPE = Scope.CONNECTION
UNITS = {
    "ack_to_data": "1",
    "acks_lost": "acks",
}


def measure(analysis: Analysis, view: ConnectionView) -> dict[str, float]:
    """Of the steady window, as the receiver sent them."""
    segments = len(analysis.run.steady(view.arrived.data()))
    return {
        "ack_to_data": view.acks_sent / segments if segments else math.nan,
        "acks_lost": view.acks_lost,
    }
