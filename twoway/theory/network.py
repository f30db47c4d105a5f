"""The input of all theories: links and connections."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from twoway.contract.network import Connection, DatagramFlow, Framing
from twoway.links.element import Elements
from twoway.links.half_duplex import Medium

# The theory for links whose directions share a medium; it is the only one.
HALF_DUPLEX = "half_duplex"
_Kind = TypeVar("_Kind")


@dataclass(frozen=True)
class Link:
    """One direction's bottleneck.

    Attributes:
        rate_bit: rate, bit/s; for a DTM channel the rate at the start of traffic.
        delay_ns: propagation delay.
        buffer_packets: limit of the queue, the packet in service included.
        data_s, ack_s: transmission times of a full segment, and of an ACK with no options except
            timestamps.
        payload_share: payload of a full segment over its size on the link.
        framing: what the link adds to a frame.
        elements: the other elements of the link.
        mark_above_s: the wait above which the queue marks each packet; 0: none.
    """

    rate_bit: float
    delay_ns: int
    buffer_packets: int
    data_s: float
    ack_s: float
    payload_share: float
    framing: Framing = field(default_factory=Framing)
    elements: Elements = field(default=Elements(), hash=False)
    mark_above_s: float = 0


@dataclass(frozen=True)
class Setup:
    """An experiment's parameters.

    Attributes:
        links: links by queue name.
        connections: connections in the experiment's order.
        segment_bytes: payload of a full segment.
        acks_every_segment: True without delayed ACKs.
        warm_up_s, duration_s: start and end of the steady window.
        modules: parameters of kernel modules by module name.
        parameters: parameters of the topology.
        pacing: True if senders spread each window over its round trip.
        receive_window_packets: the most full segments that receivers offer; None if their buffers
            decide.
        datagrams: UDP flows in the experiment's order.
        pools: slots of DTM channels' pools, by name.
        medium: the medium that both directions of each link share; None: each has its own.
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
    receive_window_packets: int | None = None
    datagrams: tuple[DatagramFlow, ...] = ()
    pools: Mapping[str, int] = field(default_factory=dict, hash=False)
    medium: Medium | None = None

    def with_element(self, kind: type[_Kind]) -> Iterator[tuple[Connection, _Kind]]:
        """List connections whose data's only link has an element of a kind, each with that element.

        Raises: ValueError with a sentence if a connection's data pass several links.
        """
        for each in self.connections:
            if len(each.directions) != 1:
                raise ValueError(f"{each.name} passes several links")
            if element := self.links[each.direction].elements.find(kind):
                yield each, element
