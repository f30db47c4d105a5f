"""Running the model for an experiment's point, from the parameters of all theories."""

import random
from collections.abc import Sequence
from typing import Any

from twoway.contract.network import Connection as Flow
from twoway.theory.network import Bottleneck, Setup
from twoway.theory.tahoe.network import Connection, Link, Network, Receiver
from twoway.theory.tahoe.outcome import Outcome
from twoway.theory.tahoe.sender import ENDLESS, FixedWindow, Tahoe
from twoway.theory.tahoe.timers import BsdTimer, LinuxTimer, S

# The paper's maxwnd, in segments.
OFFERED = 1000
TIMERS = {"linux": LinuxTimer, "bsd": BsdTimer}


def outcome_of(setup: Setup, starts_s: Sequence[float] | None = None) -> Outcome:
    """Run the model of a setup.

    Args:
        setup: two queues in opposite directions, and connections of `tahoe` or `fixed`.
        starts_s: when the connections start, if not as in the setup.

    Raises: ValueError with a sentence if the model does not cover the setup.
    """
    if len(setup.links) != 2:
        raise ValueError(f"is about one link in both directions, not {len(setup.links)} queues")
    queues = tuple(setup.links)
    flows = setup.connections
    starts = starts_s or [each.start_s for each in flows]
    connections = [
        _connection(setup, each, queues.index(each.direction), round(start * S))
        for each, start in zip(flows, starts, strict=True)
    ]
    watch_ns = (round(setup.warm_up_s * S), round(setup.duration_s * S))
    first, second = (_link(setup.links[name]) for name in queues)
    network = Network((first, second), connections, watch_ns).run()
    return Outcome(network, (queues[0], queues[1]), tuple(each.name for each in flows))


def random_starts(setup: Setup, seed: int, within_s: float) -> list[float]:
    """Draw a start for each connection, evenly within a time."""
    draw = random.Random(seed)  # noqa: S311 - starts, no secrets
    return [round(draw.uniform(0, within_s), 3) for _ in setup.connections]


def parameters(setup: Setup) -> dict[str, Any]:
    """Collect all that the model takes from a setup, as JSON has it."""
    return {
        "links": {name: vars(_link(link)) for name, link in setup.links.items()},
        "connections": [
            [each.name, each.direction, each.congestion, each.window_packets, each.start_s]
            for each in setup.connections
        ],
        "acks_every_segment": setup.acks_every_segment,
        "tahoe": {"slow_start": "paper", "timer": "linux", **setup.modules.get("tcp_tahoe", {})},
        "watched_s": [setup.warm_up_s, setup.duration_s],
    }


def _link(link: Bottleneck) -> Link:
    return Link(round(link.data_s * S), round(link.ack_s * S), link.delay_ns, link.buffer_packets)


def _connection(setup: Setup, flow: Flow, node: int, start_ns: int) -> Connection:
    chosen = setup.modules.get("tcp_tahoe", {})
    if flow.congestion not in {"tahoe", "fixed"}:
        raise ValueError(f"is about tahoe and fixed; {flow.name} has {flow.congestion}")
    sender: Tahoe | FixedWindow
    if flow.congestion == "fixed":
        sender = FixedWindow(flow.window_packets or 0)
    else:
        sender = Tahoe(
            OFFERED,
            fast_retransmit=True,
            bsd=False,
            through=chosen.get("slow_start") == "bsd",
            halves_sent=chosen.get("ssthresh") == "bsd",
            written=ENDLESS,
        )
    return Connection(
        node=node,
        timer=TIMERS[str(chosen.get("timer", "linux"))](),
        start_ns=start_ns,
        sender=sender,
        receiver=Receiver(delays=not setup.acks_every_segment),
    )
