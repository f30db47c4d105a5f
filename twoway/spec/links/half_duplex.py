"""tc's words for a half-duplex medium that both directions of a link share."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from twoway.contract.links import medium
from twoway.spec.graph import Graph, Interface
from twoway.spec.shaper import Shaper, options

if TYPE_CHECKING:
    from twoway.spec.experiment import Direction


class HalfDuplex(medium.HalfDuplex):
    """One medium for both directions of a link: one packet at a time, the ends take turns.

    There are no collisions and no random back-off.
    """

    def shaper(self, interface: Interface, direction: "Direction", number: int) -> Shaper:
        """Build a queue at one end of a link, whose medium has a number."""
        medium, rate = self.medium, round(direction.start_mbit * 1e6) // 8
        said = {
            "number": number,
            "gap_ns": medium.gap_ns,
            "turn_packets": medium.turn_packets,
            "rate": rate,
            "overhead": direction.overhead_bytes,
            "limit": direction.queue_packets,
        }
        words = (
            f"medium number {number} gap {medium.gap_ns}ns turn {medium.turn_packets} "
            f"rate {8 * rate}bit overhead {direction.overhead_bytes} "
            f"limit {direction.queue_packets}"
        )
        return Shaper(interface, tuple(words.split()), options("medium", said))


def media(graph: Graph) -> Mapping[str, int]:
    """Count the links whose queues share a medium: each link's number by its interfaces."""
    shaped = _shaped(graph)
    links = dict.fromkeys(frozenset((i.name, i.peer_name)) for i in shaped.values())
    numbers = {link: number for number, link in enumerate(links)}
    return {name: numbers[frozenset((name, i.peer_name))] for name, i in shaped.items()}


def one_way_links(graph: Graph) -> list[str]:
    """List what is wrong with links that have a queue at one end alone."""
    shaped = _shaped(graph)
    return [
        f"half_duplex: {name} has a queue, and the link's other end, {interface.peer_name}, has "
        "none: a medium is shared by two"
        for name, interface in shaped.items()
        if interface.peer_name not in shaped
    ]


def _shaped(graph: Graph) -> dict[str, Interface]:
    return {i.name: i for placed in graph.queues.values() for i in placed}
