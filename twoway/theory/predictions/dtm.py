"""A DTM channel behind the bottleneck of Reno or Tahoe flows.

After Abrahamsson et al. (2002). The slots of a decision depend on the earlier estimates, and so on
the flow's start, which is not known. Slots therefore have bounds:

    few <= slots <= many    over all starts, exact where the bounds agree; or over everything
                            that may have come before a cycle
"""

import itertools
import math
from collections.abc import Iterator

import numpy as np

from twoway.contract.network import Connection
from twoway.links.dtm import Channel
from twoway.theory.dtm import Allocator, allocate, half_corridor_bit, response_s, slots_for
from twoway.theory.network import Setup
from twoway.theory.predictions.barakat import flow_cycle
from twoway.theory.window_cycle import Cycle, Path

# Rates and buffers alone decide whether a channel of constant width drops packets.
TESTBED = ("drops_data",)
# Parts of a sample by which a cycle is shifted.
_PHASES = 6
# Packets that a flow sends at once at its start (RFC 6928), as Linux does.
_INITIAL_WINDOW = 10
# Number of loaded round trips within which all losses of slow start are repaired.
_REPAIR_TRIPS = 10


def predict(setup: Setup) -> dict[str, float]:
    """Predict each flow's throughput and the channel's slots.

    Each flow follows its own cycle at its own bottleneck, as if nothing were lost at the channel.
    If a flow's window always fills its bottleneck, it has a constant rate from the end of slow
    start on, and `slots_min` and `slots_max` are the least and the most over all starts; the mean,
    the capacity and the number of reallocations are given if all starts agree. If the rate follows
    the window, they are the least and the most after any past.

    Raises: ValueError if losses at the channel matter: it is not wider than its flows'
        bottlenecks, or is reallocated for several flows at once.
    """
    name, dtm, cycles = _path(setup)
    link = setup.links[name]
    packet_bit = link.data_s * link.rate_bit
    if sum(_bottleneck_rate(setup, flow) for flow in cycles) * packet_bit > link.rate_bit:
        raise ValueError(f"is about a channel wider than its flows' bottlenecks; {name} is not")
    predicted = {}
    for flow, cycle in cycles.items():
        bottleneck = setup.links[flow.direction]
        share = cycle.rate * bottleneck.data_s
        mbit = share * bottleneck.rate_bit / 1e6
        predicted[f"efficiency.{flow.name}"] = share
        predicted[f"throughput.{flow.name}"] = mbit
        predicted[f"goodput.{flow.name}"] = mbit * bottleneck.payload_share
        predicted[f"utilisation.{flow.direction}"] = share
    used_mbit = sum(cycle.rate for cycle in cycles.values()) * packet_bit / 1e6
    slots = _slots(setup, dtm, list(cycles.values()), packet_bit)
    if not dtm.rate:
        # Bursts of one packet of each flow fit, because no bottleneck is faster.
        slots["drops_data"] = max(0.0, len(cycles) - link.buffer_packets)
    if "slots_mean" in slots:
        capacity_mbit = slots["slots_mean"] * dtm.slot_bit / 1e6
        slots["capacity"] = capacity_mbit
        slots["capacity_unused"] = capacity_mbit - used_mbit
        slots["capacity_goodput"] = used_mbit * link.payload_share / capacity_mbit
        slots["utilisation"] = used_mbit / capacity_mbit
    return predicted | {f"{family}.{name}": value for family, value in slots.items()}


def printed_values(setup: Setup) -> dict[str, float]:
    """Compute the paper's formula for slots without rounding, if a flow's rate is constant.

    Raises: as `predict`.
    """
    name, dtm, cycles = _path(setup)
    link = setup.links[name]
    bit = sum(cycle.rate for cycle in cycles.values()) * link.data_s * link.rate_bit
    if not dtm.rate or not all(_is_constant(cycle) for cycle in cycles.values()):
        return {}
    slots = bit / dtm.slot_bit + dtm.rate.margin_slots
    slots += half_corridor_bit(dtm) / dtm.slot_bit
    return {f"{family}.{name}": slots for family in ("slots_mean", "slots_min", "slots_max")}


def _path(setup: Setup) -> tuple[str, Channel, dict[Connection, Cycle]]:
    """Find the channel, and each flow's cycle before it."""
    name, dtm = _channel(setup)
    return name, dtm, {flow: _own_cycle(setup, flow, name) for flow in setup.connections}


def _is_constant(cycle: Cycle) -> bool:
    """Tell whether the link is busy throughout a cycle."""
    return all(
        phase.growth == "constant" and math.isclose(phase.packets, phase.duration_s * cycle.rate)
        for phase in cycle.phases
        if phase.duration_s
    )


def _channel(setup: Setup) -> tuple[str, Channel]:
    """Find the only DTM channel."""
    found = [(name, link.elements.find(Channel)) for name, link in setup.links.items()]
    channels = {name: channel for name, channel in found if channel}
    if len(channels) != 1:
        raise ValueError(f"is about one DTM channel, got {', '.join(channels) or 'none'}")
    return next(iter(channels.items()))


def _own_cycle(setup: Setup, flow: Connection, channel: str) -> Cycle:
    """Compute a flow's cycle at its own bottleneck, before the channel."""
    if channel not in flow.directions or flow.direction == channel:
        raise ValueError(f"is about bottlenecks before the channel; {flow.name} has none")
    sharing = [each.name for each in setup.connections if flow.direction in each.directions]
    if len(sharing) > 1:
        raise ValueError(f"is about a bottleneck each; {', '.join(sharing)} share one")
    return flow_cycle(setup, flow)


def _bottleneck_rate(setup: Setup, flow: Connection) -> float:
    """Compute the rate of a flow's bottleneck, packets/s."""
    return 1 / setup.links[flow.direction].data_s


def _slots(
    setup: Setup, channel: Channel, cycles: list[Cycle], packet_bit: float
) -> dict[str, float]:
    """Predict the channel's metrics of slots."""
    if any((channel.buffer, channel.hysteresis, channel.trace)):
        raise ValueError("is about the rate allocator and static channels")
    if not channel.rate:
        kept = dict.fromkeys(("slots_mean", "slots_min", "slots_max"), float(channel.slots))
        return {**kept, "reallocations": 0.0}
    if len(cycles) != 1:
        raise ValueError("is about one flow where the channel is reallocated")
    (cycle,) = cycles
    if not _is_constant(cycle):
        fewest, most = _range(cycle, channel, packet_bit)
        return {"slots_min": float(fewest), "slots_max": float(most)}
    sample_s = channel.rate.sample_ms / 1e3
    count = round(setup.duration_s / sample_s)
    found = [
        _steady(allocate(rates, channel), setup.warm_up_s, setup.duration_s)
        for rates in _histories(cycle.path, packet_bit, sample_s, count)
    ]
    slots = {
        "slots_min": min(each["slots_min"] for each in found),
        "slots_max": max(each["slots_max"] for each in found),
    }
    if all(each == found[0] for each in found):
        slots |= found[0]
    return slots


def _range(cycle: Cycle, channel: Channel, packet_bit: float) -> tuple[int, int]:
    """Bound the slots that are possible in a cycle, whatever came before it.

    A decision stays while the estimate is within half a corridor of the decision's estimate. The
    decision's estimate is therefore at least the cycle's largest minus half a corridor, and at most
    the cycle's least plus half a corridor. If the estimate leaves the corridor, the next decision
    uses an estimate of the cycle.
    """
    rate = channel.rate
    assert rate
    sample_s = rate.sample_ms / 1e3
    settling = response_s(0.999, max(rate.shift_up, rate.shift_down), sample_s) / sample_s
    count = math.ceil(settling + cycle.duration_s / sample_s)
    estimates = []
    for phase_s in np.arange(_PHASES) * sample_s / _PHASES:
        edges_s = np.arange(count + 1) * sample_s + phase_s
        allocator = Allocator(0, channel.slots, channel)
        for number, packets_s in enumerate(cycle.rates(edges_s)):
            estimate = allocator.sample(number, round(packets_s * packet_bit))
            if number > settling:
                estimates.append(estimate)
    least, largest, half = min(estimates), max(estimates), half_corridor_bit(channel)
    return (
        slots_for(min(least, largest - half), channel),
        slots_for(max(largest, least + half), channel),
    )


def _histories(path: Path, packet_bit: float, sample_s: float, count: int) -> Iterator[list[int]]:
    """List rates of the samples, bit/s, for each start of a flow that keeps its bottleneck busy.

    The flow sends nothing before its start, and at the bottleneck's rate in the end. Slow start is
    in between: it lasts at most as long as a window of 10 takes to fill the pipe, plus two round
    trips for the handshake and the first ACK. The repair of slow start's many losses may leave the
    bottleneck idle for one round trip, at any time in the first ten.
    """
    slow_start_s = path.trip_s * (2 + math.log2(max(path.pipe / _INITIAL_WINDOW, 1)))
    trip_s = path.largest_window / path.rate
    edges_s = np.arange(count + 1) * sample_s
    starts_s = np.arange(0, slow_start_s + sample_s, sample_s / 2)
    gaps_s = np.append(np.arange(0, _REPAIR_TRIPS * trip_s, sample_s / 2), np.inf)
    for start_s, gap_s in itertools.product(starts_s, gaps_s):
        idle_s = np.clip(edges_s - start_s - gap_s, 0, trip_s)
        bits = (np.maximum(edges_s - start_s, 0) - idle_s) * path.rate * packet_bit
        yield (np.diff(bits) / sample_s).round().astype(np.int64).tolist()


def _steady(changes: list[tuple[float, int]], start_s: float, stop_s: float) -> dict[str, float]:
    """Compute mean, least and most slots, and the number of changes.

    All are over the steady window.
    """
    times, slots = (np.array(column) for column in zip(*changes, strict=True))
    held_s = np.diff(np.clip(np.append(times, stop_s), start_s, stop_s))
    held = slots[held_s > 0]
    return {
        "slots_mean": float(slots @ held_s / held_s.sum()),
        "slots_min": float(held.min()),
        "slots_max": float(held.max()),
        "reallocations": float(((times > start_s) & (times < stop_s)).sum()),
    }
