"""Goodput over allocated capacity of a DTM channel."""

from twoway.measure import channel
from twoway.measure.analysis import Analysis, QueueView
from twoway.measure.metric import Scope
from twoway.theory.dtm import SLOT_BIT

SCOPE = Scope.CHANNEL
UNITS = {"capacity_goodput": "1"}


def measure(analysis: Analysis, view: QueueView, slots: channel.Slots) -> dict[str, float]:
    """Divide the goodput of the channel's connections by its mean capacity."""
    run = analysis.run
    goodput_bit = sum(
        analysis.goodput_bit(connection)
        for connection in analysis.connections.values()
        if run.belongs(view.passed.packets, connection.connection, forward=True).any()
    )
    capacity_bit = slots.mean(run.steady_ns, run.stop_ns) * SLOT_BIT
    return {"capacity_goodput": goodput_bit / capacity_bit}
