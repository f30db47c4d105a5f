"""Tahoe through several nodes, packet by packet.

Its printed forms are Barakat and Altman's inequality and the resulting fluid cycle.
"""

import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import Any

from twoway.contract.network import Connection
from twoway.theory import tables
from twoway.theory.network import Bottleneck, Setup
from twoway.theory.predictions import barakat
from twoway.theory.tahoe_chain import Course, Hop, simulate

NAME = "tahoe_chain"
# A cluster of losses in the sense of `sawtooth_period` ends after a round trip with full queues.
_PRINTED = ("sawtooth_efficiency", "sawtooth_period", "window_peak")


def predict(setup: Setup) -> dict[str, float]:
    """Predict a flow's cycle, its losses and its largest window.

    Raises: ValueError if there are several flows, or one that is not Tahoe.
    """
    return tables.look_up(NAME, parameters(setup)) or compute(setup)


def printed_values(setup: Setup) -> dict[str, float]:
    """Compute the cycle of the paper's inequality and fluid, and W_B.

    Raises: ValueError as `predict`.
    """
    (flow,) = setup.connections
    fluid = barakat.predict(setup)
    forms = {f"{name}.{flow.name}": fluid[f"{name}.{flow.name}"] for name in _PRINTED}
    return forms | {f"first_loss_window.{flow.name}": barakat.overflow_window(setup, flow)}


def parameters(setup: Setup) -> Mapping[str, Any]:
    """Collect the parameters that the model needs from a setup.

    Raises: ValueError if there are several flows, or one that is not Tahoe.
    """
    if len(setup.connections) != 1:
        raise ValueError(f"is about one flow, got {len(setup.connections)}")
    (flow,) = setup.connections
    if flow.congestion not in ("tahoe", "tahoe_rto"):
        raise ValueError(f"is about tahoe, not {flow.congestion}")
    return {
        "congestion": flow.congestion,
        "hops": [vars(hop) for hop in _hops(setup, flow)],
        "back_ns": _back_ns(setup, flow),
        "watched_s": [setup.warm_up_s, setup.duration_s],
    }


def compute(setup: Setup) -> dict[str, float]:
    """Run the model, and measure it as runs are measured.

    Raises: ValueError as `predict`.
    """
    parameters(setup)
    (flow,) = setup.connections
    hops = _hops(setup, flow)
    course = simulate(
        hops,
        _back_ns(setup, flow),
        round(setup.duration_s * 1e9),
        fast_retransmit=flow.congestion == "tahoe",
    )
    steady_ns = (round(setup.warm_up_s * 1e9), round(setup.duration_s * 1e9))
    gap_ns = _back_ns(setup, flow) + sum(hop.service_ns * hop.limit for hop in hops)
    epochs = _clusters(course.lost_ns, gap_ns)
    values = _cycle(course, epochs, steady_ns, setup.links[flow.direction].data_s)
    steady = [each for each in epochs if steady_ns[0] <= each[0] < steady_ns[1]]
    windows = [window for time, window in course.windows if time >= steady_ns[0]]
    found = {f"{name}.{flow.name}": value for name, value in values.items()}
    arrived = bisect_left(course.arrived_ns, steady_ns[1]) - bisect_left(
        course.arrived_ns, steady_ns[0]
    )
    data_s = setup.links[flow.direction].data_s
    found[f"efficiency.{flow.name}"] = arrived * data_s * 1e9 / (steady_ns[1] - steady_ns[0])
    found[f"window_peak.{flow.name}"] = float(max(windows))
    if epochs:
        found[f"first_loss_window.{flow.name}"] = float(course.first_loss_window)
    if steady:
        found["drops_per_epoch"] = sum(map(len, steady)) / len(steady)
    return found


def _hops(setup: Setup, flow: Connection) -> list[Hop]:
    return [_hop(setup.links[name]) for name in flow.directions]


def _hop(link: Bottleneck) -> Hop:
    """Make a hop whose transmission times are cut to whole ns, as netem's."""
    size_bytes = round(link.data_s * link.rate_bit / 8)
    return Hop(size_bytes * 1_000_000_000 // (int(link.rate_bit) // 8), link.buffer_packets)


def _back_ns(setup: Setup, flow: Connection) -> int:
    there = sum(setup.links[name].delay_ns for name in flow.directions)
    back = [setup.links[name] for name in flow.ack_directions]
    return there + sum(link.delay_ns + round(link.ack_s * 1e9) for link in back)


def _clusters(times_ns: Sequence[int], gap_ns: int) -> list[list[int]]:
    """Group losses into epochs, separated by at least a round trip with full queues."""
    found: list[list[int]] = []
    for time in times_ns:
        if found and time - found[-1][-1] <= gap_ns:
            found[-1].append(time)
        else:
            found.append([time])
    return found


def _cycle(
    course: Course, epochs: list[list[int]], steady_ns: tuple[int, int], data_s: float
) -> dict[str, float]:
    """Measure whole cycles, as metrics/window.py does; nothing without a whole cycle."""
    starts = [each[0] for each in epochs]
    since = [time - before for time, before in zip(starts, [0, *starts], strict=False)]
    steady = [i for i, time in enumerate(starts) if steady_ns[0] <= time < steady_ns[1]]
    longest = max((since[i] for i in steady), default=math.inf)
    ends = [starts[i] for i in steady if 2 * since[i] >= longest]
    if len(ends) < 2:
        return {}
    arrived = bisect_left(course.arrived_ns, ends[-1]) - bisect_left(course.arrived_ns, ends[0])
    seconds = (ends[-1] - ends[0]) / 1e9
    return {
        "sawtooth_period": seconds / (len(ends) - 1),
        "sawtooth_efficiency": arrived * data_s / seconds,
    }
