"""What a theory is told of an experiment: links and connections, in SI units."""

import importlib
import pkgutil
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from twoway.theory import predictions


@dataclass(frozen=True)
class Link:
    """One direction's bottleneck.

    Attributes:
        rate_bit: bit/s; of a DTM channel that at the start of traffic.
        delay_s: propagation.
        buffer_packets: limit of its queue, the packet in service included.
        data_s, ack_s: transmission time of a full segment, and of an ACK without options but
            timestamps.
        payload_share: payload over size on the link, of a full segment.
        dtm: the DTM channel's parameters, as the profile has them, if it is one.
    """

    rate_bit: float
    delay_s: float
    buffer_packets: int
    data_s: float
    ack_s: float
    payload_share: float
    dtm: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Connection:
    """One connection with unlimited data, so much to send, or a rate.

    Attributes:
        name: as in metrics.
        direction, ack_direction: links that its data and its ACKs pass; the slowest of several.
        directions, ack_directions: all of them, in order.
        congestion: the congestion control.
        window_packets: the constant window of `fixed`, else None.
        alpha_packets: of `fast`, else None.
        rate_mbit: mean rate of its packets, if it sends at a rate of its own, else None.
        start_s: after the start of traffic.
        transfer_bytes: payload that it has to send; None if unlimited.
    """

    name: str
    direction: str
    ack_direction: str
    directions: tuple[str, ...]
    ack_directions: tuple[str, ...]
    congestion: str
    window_packets: int | None
    alpha_packets: int | None
    rate_mbit: float | None
    start_s: float
    transfer_bytes: int | None = None


@dataclass(frozen=True)
class Setup:
    """An experiment's parameters.

    Attributes:
        links: by direction, as the profile names them.
        connections: in the experiment's order.
        segment_bytes: payload of a full segment.
        acks_every_segment: no delayed ACKs.
        warm_up_s, duration_s: the steady window is between the two.
        modules: parameters of kernel modules by module name.
        parameters: of the topology.
        pacing: senders spread each window over its round trip.
    """

    links: Mapping[str, Link]
    connections: tuple[Connection, ...]
    segment_bytes: int
    acks_every_segment: bool
    warm_up_s: float
    duration_s: float
    modules: Mapping[str, Mapping[str, int | str]]
    parameters: Mapping[str, int]
    pacing: bool = False


def known_theories() -> list[str]:
    """The names that `theory:` may have."""
    return sorted(module.name for module in pkgutil.iter_modules(predictions.__path__))


def predict(theory: str, setup: Setup) -> dict[str, float]:
    """Values by metric name, from one of the known theories.

    Raises: ValueError with a sentence if the theory does not cover these parameters.
    """
    module = importlib.import_module(f"{predictions.__name__}.{theory}")
    predicted: dict[str, float] = module.predict(setup)
    return predicted
