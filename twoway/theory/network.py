"""The input of all theories: links and connections."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self, TypeVar

from twoway.contract.network import Connection, DatagramFlow
from twoway.links.element import Elements, Link
from twoway.links.half_duplex import Medium

# The theory for links whose directions share a medium; it is the only one.
HALF_DUPLEX = "half_duplex"
_Kind = TypeVar("_Kind")


@dataclass(frozen=True)
class Bottleneck:
    """A link and the times that an experiment's packets take on it.

    Attributes:
        link: one direction of a link.
        data_s, ack_s: transmission times of a full segment, and of an ACK with no options except
            timestamps.
        payload_share: payload of a full segment over its size on the link.
    """

    link: Link = field(hash=False)
    data_s: float
    ack_s: float
    payload_share: float

    def with_fields(self, **fields: Any) -> Self:
        """Copy it with other fields of the link, as a profile has them; the times stay."""
        return replace(self, link=self.link.model_copy(update=fields))

    @property
    def rate_bit(self) -> float:
        """The rate, bit/s; for a DTM channel the rate at the start of traffic."""
        return self.link.start_mbit * 1e6

    @property
    def delay_ns(self) -> int:
        """The propagation delay, ns; the longest if it changes."""
        return self.link.delay_ns

    @property
    def buffer_packets(self) -> int:
        """The queue's limit, the packet in service included."""
        return self.link.queue_packets

    @property
    def elements(self) -> Elements:
        """The link's elements besides rate, queue and delay."""
        return self.link.elements

    @property
    def mark_above_s(self) -> float:
        """The wait above which the queue marks each packet, s; 0: none."""
        return self.link.mark_above_ms / 1e3


@dataclass(frozen=True)
class Setup:
    """An experiment's parameters.

    Attributes:
        links: bottlenecks by queue name.
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

    links: Mapping[str, Bottleneck]
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
