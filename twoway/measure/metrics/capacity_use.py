"""Capacity allocated against goodput: what of a DTM channel's slots reaches an application."""

from twoway.measure import channel
from twoway.measure.analysis import Analysis, QueueView
from twoway.measure.metric import Scope
from twoway.theory.dtm import SLOT_BIT

SCOPE = Scope.CHANNEL
UNITS = {"capacity_goodput": "1"}


def measure(analysis: Analysis, view: QueueView, slots: channel.Slots) -> dict[str, float]:
    """New payload of the connections that pass it, over capacity, in the steady window."""
    run = analysis.run
    goodput_bit = sum(
        analysis.goodput_bit(connection)
        for connection in analysis.connections.values()
        if run.belongs(view.passed.packets, connection.connection, forward=True).any()
    )
    capacity_bit = slots.mean(run.steady_ns, run.stop_ns) * SLOT_BIT
    return {"capacity_goodput": goodput_bit / capacity_bit}
