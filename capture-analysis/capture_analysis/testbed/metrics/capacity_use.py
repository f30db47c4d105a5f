"""Capacity allocated against goodput: what of a DTM channel's slots reaches an application."""

from capture_analysis.testbed import dtm
from capture_analysis.testbed.analysis import Analysis, QueueView
from capture_analysis.testbed.metric import Scope
from capture_analysis.theory.dtm import SLOT_BIT

SCOPE = Scope.CHANNEL
UNITS = {"capacity_goodput": "1"}


def measure(analysis: Analysis, view: QueueView, slots: dtm.Slots) -> dict[str, float]:
    """New payload of the connections that pass it, over capacity, in the steady window."""
    run = analysis.run
    goodput_bit = sum(
        analysis.goodput_bit(connection)
        for connection in analysis.connections.values()
        if run.belongs(view.passed.packets, connection.connection, forward=True).any()
    )
    capacity_bit = slots.mean(run.steady_ns, run.stop_ns) * SLOT_BIT
    return {"capacity_goodput": goodput_bit / capacity_bit}
