"""Slots and capacity of a DTM channel, and the goodput that its connections draw from it."""

import math

import numpy as np
from capture_analysis.definition import Definition

from twoway.contract.metrics import FidelityRow
from twoway.measure import channel, checks, real_time, throughput
from twoway.measure.allocations import agreement
from twoway.measure.analysis import Analysis
from twoway.measure.checks import QueueCheck
from twoway.measure.metric import Scope, estimates
from twoway.measure.queue_view import QueueView
from twoway.measure.real_time import ClockError

SLOTS_MEAN = Definition("slots_mean", "slots", "time average of the slots that the channel holds")
SLOTS_MIN = Definition("slots_min", "slots", "fewest slots that the channel holds")
SLOTS_MAX = Definition("slots_max", "slots", "most slots that the channel holds")
CAPACITY = Definition(
    "capacity", "Mbit/s", "time average of the rate that the channel's slots give"
)
CAPACITY_UNUSED = Definition(
    "capacity_unused",
    "Mbit/s",
    "the channel's capacity times the share of time in which it does not transmit",
    least=-math.inf,
)
REALLOCATIONS = Definition("reallocations", "1", "changes of the channel's slots")
FIRST_REALLOCATION = Definition(
    "first_reallocation", "s", "time from the start of traffic to the first change of the slots"
)
CAPACITY_GOODPUT = Definition(
    "capacity_goodput", "1", "goodput of the connections that use the channel over its capacity"
)


@estimates(
    Scope.CHANNEL,
    SLOTS_MEAN,
    SLOTS_MIN,
    SLOTS_MAX,
    CAPACITY,
    CAPACITY_UNUSED,
    REALLOCATIONS,
    FIRST_REALLOCATION,
)
def slots(analysis: Analysis, view: QueueView, held: channel.Slots) -> tuple[float, ...]:
    """Describe the slots in the steady window.

    `first_reallocation` is for the whole run.
    """
    run = analysis.run
    steady = (run.steady_ns, run.stop_ns)
    within = held.counts_within(*steady)
    capacity = held.mean(*steady) * held.options.slot_bit / 1e6
    used = capacity * throughput.utilisation(view.passed, *steady)
    changes = held.changes(held.start_ns, run.stop_ns)
    return (
        held.mean(*steady),
        within.min(),
        within.max(),
        capacity,
        capacity - used,
        len(held.changes(*steady)),
        (changes[0] - run.start_ns) / 1e9 if len(changes) else math.nan,
    )


@estimates(Scope.CHANNEL, CAPACITY_GOODPUT)
def capacity_goodput(analysis: Analysis, view: QueueView, held: channel.Slots) -> tuple[float, ...]:
    """Divide the new payload of the channel's connections by its mean capacity."""
    run = analysis.run
    steady = run.steady_ns, run.stop_ns
    payload = sum(
        throughput.new_payload_bytes(each.segments_in, each.brought, *steady)
        for each in analysis.connections.values()
        if len(run.rows(view.lanes, each.connection, forward=True))
    )
    return (payload * 8e9 / run.window_ns / (held.mean(*steady) * held.options.slot_bit),)


@QueueCheck
def check(
    analysis: Analysis, direction: str, view: QueueView, error: ClockError | None
) -> list[FidelityRow]:
    """Compare reallocations with the paper's algorithm fed with captures.

    On a clock that runs while the host works, a packet may reach the channel later than its
    capture, by up to the lateness of the latest departure; the uncertainty of the estimate that
    results must be below a slot. The reason for the check is in decision 0016.
    """
    slots = view.slots
    if not slots or not slots.options.rate:
        return []
    if view.queue.is_managed and slots.options.rate.sees_drops:
        return []
    packets = view.passed.packets
    refused = analysis.run.elements(view.queue).refuse(packets.time_ns, packets.frame_bytes)
    came = view.passed.where(np.flatnonzero(~refused))
    stop_ns = analysis.run.stop_ns
    wanted = slots.wanted
    decided_ns = wanted.changes(slots.start_ns, stop_ns)
    what = f"{direction}: {len(decided_ns)} reallocations against figure 1 fed with the captures"
    if error:
        late_ns = int(view.error_ns.max(initial=0))
        drift_ppb = analysis.run.clock(view.queue.interface).drift_ppb
        found = agreement(view.queue, slots, came, stop_ns, late_ns=late_ns, drift_ppb=drift_ppb)
        known_bit = real_time.quantile(found.width_bit)
        bound = f"real time: 0 impossible or missing, estimates known to {known_bit} bit/s in 99 %"
        row = checks.row(what, found.off, bound, found.off == 0)
        return [checks.withhold_pass(row, known_bit, slots.options.slot_bit, "a slot")]
    expected = channel.estimates(view.queue, slots, came, stop_ns)
    got = set(zip(decided_ns, wanted.count_at(decided_ns), strict=True))
    due = set(zip(expected.change_ns, expected.slots, strict=True))
    off = len(got ^ {each for each in due if each[0] < stop_ns})
    return [checks.row(what, off, "0 differ", off == 0)]
