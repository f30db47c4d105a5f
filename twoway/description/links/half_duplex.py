"""tc's words for a half-duplex medium that both directions of a link share."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from twoway.contract.links import medium
from twoway.description.graph import Graph
from twoway.description.interface import Interface
from twoway.description.shaper import Shaper, options

if TYPE_CHECKING:
    from twoway.description.experiment import Direction


class Place(NamedTuple):
    """The place of a medium: the node in whose network namespace it has a number."""

    node: str
    number: int


class HalfDuplex(medium.HalfDuplex):
    """One medium for both directions of a link.

    It carries one packet at a time, and the ends alternate. There are no collisions and no random
    back-off.
    """

    @property
    def needs_guest(self) -> bool:
        """True: the order of arrivals, to the nanosecond, decides which end holds the medium."""
        return True

    def shaper(self, interface: Interface, direction: "Direction", place: Place) -> Shaper:
        """Build a queue at one end of a link, whose medium has a place."""
        medium, rate = self.medium, round(direction.start_mbit * 1e6) // 8
        said = {
            "number": place.number,
            "gap_ns": medium.gap_ns,
            "turn_packets": medium.turn_packets,
            "rate": rate,
            "overhead": direction.overhead_bytes,
            "limit": direction.queue_packets,
        }
        words = (
            f"medium number {place.number} gap {medium.gap_ns}ns turn {medium.turn_packets} "
            f"rate {8 * rate}bit overhead {direction.overhead_bytes} "
            f"limit {direction.queue_packets}"
        )
        shaper = Shaper(interface, tuple(words.split()), options("medium", said), is_ours=True)
        return shaper.in_namespace(place.node)


def media(graph: Graph) -> Mapping[str, Place]:
    """Place a medium for each link whose queues share one; by the link's interfaces."""
    places: dict[str, Place] = {}
    for name, interface in _shaped(graph).items():
        if name not in places:
            place = Place(node=interface.node, number=len(places) // 2)
            places |= {name: place, interface.peer_name: place}
    return places


def one_way_links(graph: Graph) -> list[str]:
    """List links with a medium that have a queue at one end only."""
    shaped = _shaped(graph)
    return [
        f"half_duplex: {name} has a queue, and the link's other end, {interface.peer_name}, has "
        "none: two ends share a medium"
        for name, interface in shaped.items()
        if interface.peer_name not in shaped
    ]


def _shaped(graph: Graph) -> dict[str, Interface]:
    return {i.name: i for placed in graph.queues.values() for i in placed}
