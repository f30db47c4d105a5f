"""Acknowledgements: how many to a segment, and how many were lost."""

import math

from capture_analysis.testbed.analysis import Analysis, ConnectionView
from capture_analysis.testbed.metric import Scope

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
