"""A DTM channel behind the bottleneck of Reno or Tahoe flows.

After Abrahamsson et al. (2002).
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from twoway.contract.network import Connection
from twoway.theory.dtm import SLOT_BIT, allocate, settled_slots
from twoway.theory.network import Setup
from twoway.theory.predictions.barakat import flow_cycle
from twoway.theory.window_cycle import Cycle


def predict(setup: Setup) -> dict[str, float]:
    """Predict each flow's throughput and the channel's slots.

    Each flow follows its own cycle at its own bottleneck, as if nothing were lost at the channel.
    If a flow's window always fills its bottleneck, the flow has a constant rate, and the channel
    the slots of a decision at that rate; earlier rates may leave it a slot off (see
    `settled_slots`). Otherwise slots follow the window's cycle, which starts with its loss.

    Raises: ValueError where losses at the channel decide: if it is not wider than its flows'
        bottlenecks, or is reallocated for several flows at once.
    """
    name = _channel(setup)
    link = setup.links[name]
    assert link.dtm is not None
    cycles = {flow: _alone(setup, flow, name) for flow in setup.connections}
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
    slots = _slots(setup, link.dtm, list(cycles.values()), packet_bit)
    capacity_mbit = slots["slots_mean"] * SLOT_BIT / 1e6
    return predicted | {
        f"utilisation.{name}": used_mbit / capacity_mbit,
        f"capacity.{name}": capacity_mbit,
        f"capacity_unused.{name}": capacity_mbit - used_mbit,
        **{f"{family}.{name}": value for family, value in slots.items()},
    }


def _channel(setup: Setup) -> str:
    """Find the only DTM channel."""
    names = [name for name, link in setup.links.items() if link.dtm]
    if len(names) != 1:
        raise ValueError(f"is about one DTM channel, got {', '.join(names) or 'none'}")
    return names[0]


def _alone(setup: Setup, flow: Connection, channel: str) -> Cycle:
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
    setup: Setup, channel: Mapping[str, Any], cycles: list[Cycle], packet_bit: float
) -> dict[str, float]:
    """Predict the channel's metrics of slots."""
    if any(channel[kind] for kind in ("buffer", "hysteresis", "trace")):
        raise ValueError("is about the rate allocator and static channels")
    if not channel["rate"]:
        slots = float(channel["slots"])
        kept = dict.fromkeys(("slots_mean", "slots_min", "slots_max"), slots)
        return {**kept, "reallocations": 0.0}
    if len(cycles) != 1:
        raise ValueError("is about one flow where the channel is reallocated")
    (cycle,) = cycles
    sample_s = channel["rate"]["sample_ms"] / 1e3
    edges = np.arange(round(setup.duration_s / sample_s) + 1) * sample_s
    rates = (cycle.rates(edges) * packet_bit).round().astype(np.int64)
    changes = allocate(rates.tolist(), channel)
    first = {"first_reallocation": changes[1][0]} if len(changes) > 1 else {}
    if np.ptp(rates) <= 1:  # bit/s, of rounding
        _, middle, _ = settled_slots(int(rates[0]), channel)
        settled = dict.fromkeys(("slots_mean", "slots_min", "slots_max"), float(middle))
        return {**settled, "reallocations": 0.0, **first}
    return {**_steady(changes, setup.warm_up_s, setup.duration_s), **first}


def _steady(changes: list[tuple[float, int]], start_s: float, stop_s: float) -> dict[str, float]:
    """Compute mean, least and most slots, and the number of changes.

    All are of the steady window.
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
