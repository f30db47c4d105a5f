"""Connections as theories have them, which read neither addresses nor taps."""

from typing import Any

from twoway.contract.network import CONNECT_NS, START_NS, Connection

NOWHERE: dict[str, Any] = {
    "from_": "h1",
    "to": "h2",
    "source": "10.0.1.2",
    "destination": "10.0.2.2",
    "source_port": 40001,
    "port": 5001,
    "source_interface": "h1-eth0",
    "sink_interface": "h2-eth0",
    "congestion_in_kernel": "any",
    "connect_ns": CONNECT_NS,
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
    return Connection.model_validate(NOWHERE | named | slowest | fields)
