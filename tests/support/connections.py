"""Connections, UDP flows and links for code that reads no addresses and no taps."""

from typing import Any

from twoway.contract.network import CONNECT_NS, START_NS, Connection, DatagramFlow
from twoway.description.predictions import setup_of
from twoway.links.direction import Direction
from twoway.runs.points import load_point
from twoway.theory.network import Bottleneck, Setup

NOWHERE: dict[str, Any] = {
    "from_": "h1",
    "to": "h2",
    "source": "10.0.1.2",
    "destination": "10.0.2.2",
    "source_port": 40001,
    "port": 5001,
    "source_interface": "h1-eth0",
    "sink_interface": "h2-eth0",
    "start_ns": START_NS,
}


def connection(
    name: str, data: tuple[str, ...], acks: tuple[str, ...], congestion: str, **fields: Any
) -> Connection:
    """A connection.

    Args:
        name: its name.
        data: the directions that its data passes, the slowest last.
        acks: the directions that its ACKs pass, the slowest last.
        congestion: its congestion control.
        fields: more of its fields.
    """
    named = {"name": name, "congestion": congestion, "directions": data, "ack_directions": acks}
    slowest = {"direction": data[-1], "ack_direction": acks[-1]}
    own = {"congestion_in_kernel": "any", "connect_ns": CONNECT_NS}
    return Connection.model_validate(NOWHERE | named | slowest | own | fields)


def datagram_flow(name: str, direction: str, rate_mbit: float, **fields: Any) -> DatagramFlow:
    """A UDP flow of packets of 1000 bytes at a constant rate.

    Args:
        name: its name.
        direction: the queue that it passes.
        rate_mbit: its rate.
        fields: more of its fields, or other values.
    """
    steady = {"packet_bytes": 1000, "poisson": False, "mean_on_s": None, "mean_off_s": None}
    named = {"name": name, "directions": (direction,), "rate_mbit": rate_mbit, "stop_ns": START_NS}
    return DatagramFlow.model_validate(NOWHERE | steady | named | fields)


def bottleneck(
    rate_bit: float, delay_ns: int, packets: int, data_s: float, ack_s: float, *, share: float
) -> Bottleneck:
    """Make a link with a rate, a delay and a queue, and the times of its packets."""
    fields = {"rate_mbit": rate_bit / 1e6, "delay_ms": delay_ns / 1e6, "queue_packets": packets}
    return Bottleneck(Direction.model_validate(fields), data_s, ack_s, share)


def setup_at(name: str) -> Setup:
    """Return the setup that theories get for an experiment's point."""
    it = load_point(name)
    return setup_of(it.experiment, it.profile, it.graph, it.connections, it.datagrams)
