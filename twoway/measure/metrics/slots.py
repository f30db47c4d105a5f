"""Slots of a DTM channel: number, unused capacity, reallocations."""

import math

from twoway.measure import channel, throughput
from twoway.measure.analysis import Analysis, QueueView
from twoway.measure.metric import Scope
from twoway.theory.dtm import SLOT_BIT

SCOPE = Scope.CHANNEL
UNITS = {
    "slots_mean": "slots",
    "slots_min": "slots",
    "slots_max": "slots",
    "capacity": "Mbit/s",
    "capacity_unused": "Mbit/s",
    "reallocations": "1",
    "first_reallocation": "s",
}


def measure(analysis: Analysis, view: QueueView, slots: channel.Slots) -> dict[str, float]:
    """Describe the slots in the steady window.

    `first_reallocation` is that of the whole run, in s after the start of traffic.
    """
    run = analysis.run
    steady = (run.steady_ns, run.stop_ns)
    held = slots.within(*steady)
    capacity = slots.mean(*steady) * SLOT_BIT / 1e6
    used = capacity * throughput.utilisation(view.passed, *steady)
    changes = slots.changes(slots.start_ns, run.stop_ns)
    return {
        "slots_mean": slots.mean(*steady),
        "slots_min": held.min(),
        "slots_max": held.max(),
        "capacity": capacity,
        "capacity_unused": capacity - used,
        "reallocations": len(slots.changes(*steady)),
        "first_reallocation": (changes[0] - run.start_ns) / 1e9 if len(changes) else math.nan,
    }
