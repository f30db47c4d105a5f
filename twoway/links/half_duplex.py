"""A half-duplex medium that both ends of a link share: when each end sends.

Only one packet is sent at a time. A turn holds the medium for the gap once and then for each
packet's bits. The turn goes on if the next packet of its end has arrived when one has been sent, up
to a number of packets. After a turn, and when a packet comes to an idle medium, the turn goes to
the other end if a packet has arrived there, or else to the same end again. The kernel's sch_medium
decides from counts of waiting packets at each event; this model uses times of arrival alone.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from twoway.links.element import Link, Part
from twoway.links.interface import Interface
from twoway.links.shaper import Shaper, options

IntArray = NDArray[np.int64]
_NS = 10**9
_NEVER = float("inf")


class Hold(NamedTuple):
    """The time for which one packet holds the medium.

    Attributes:
        end: the end that sends it, 0 or 1.
        start_ns: the time at which its end gets the medium, gap included.
        sent_ns: the time at which its last bit has been sent.
    """

    end: int
    start_ns: int
    sent_ns: int


@dataclass(frozen=True)
class Medium:
    """A half-duplex medium.

    Attributes:
        gap_ns: time from the start of a turn to its first bit.
        turn_packets: the most packets in a turn.
    """

    gap_ns: int
    turn_packets: int

    def holds(self, arrived_ns: Sequence[IntArray], bits_ns: Sequence[IntArray]) -> Iterator[Hold]:
        """Replay the medium; return the packets' holds in the order of sending.

        Args:
            arrived_ns: for each end, shape (n,), when its packets arrive, ascending. End 0 joined
                first and has the first turn.
            bits_ns: for each end, shape (n,), transmission times of its packets.

        Returns: the packets in the order in which they are sent.
        """
        # Plain numbers, because a step looks at one packet of each end.
        arrived = [[*map(int, each), _NEVER] for each in arrived_ns]
        bits = [list(map(int, each)) for each in bits_ns]
        at = [0, 0]
        end, left, free_ns = 1, 0, 0
        while (first_ns := min(arrived[0][at[0]], arrived[1][at[1]])) < _NEVER:
            start_ns = max(free_ns, int(first_ns))
            is_here = [arrived[each][at[each]] <= start_ns for each in (0, 1)]
            goes_on = bool(left) and start_ns == free_ns and is_here[end]
            if not goes_on:
                end = 1 - end if is_here[1 - end] else end
                left = self.turn_packets
            free_ns = start_ns + (0 if goes_on else self.gap_ns) + bits[end][at[end]]
            left -= 1
            at[end] += 1
            yield Hold(end, start_ns, free_ns)


def bits_ns(link_bytes: IntArray, rate_bit: int) -> IntArray:
    """Compute the transmission times of packets, rounded up to whole ns.

    Args:
        link_bytes: shape (n,), their sizes on the link.
        rate_bit: the rate, which the kernel has in whole bytes/s.
    """
    return np.asarray(-(-link_bytes.astype(np.int64) * _NS // (rate_bit // 8)))


class Place(NamedTuple):
    """The place of a medium: the node in whose network namespace it has a number."""

    node: str
    number: int


class HalfDuplex(Part):
    """One medium for both directions of a link.

    It carries one packet at a time, and the ends alternate. There are no collisions and no random
    back-off.
    """

    FIELD: ClassVar = "half_duplex"
    TITLE: ClassVar = "A half-duplex medium"
    DESCRIPTION: ClassVar = (
        "both directions of a link share one medium, and each has its rate and queue; by default "
        "each direction has its own medium"
    )

    gap_us: Annotated[float, Field(ge=0, le=10_000_000, multiple_of=1e-3)] = Field(
        description="time from the start of a turn "
        "to its first bit: access, preamble, space between "
        "frames; us, to the nanosecond"
    )
    turn_packets: Annotated[int, Field(ge=1, le=65535)] = Field(
        default=1, description="the most packets that an end sends in one turn, after one gap"
    )

    @property
    def medium(self) -> Medium:
        """The medium, in whole ns."""
        return Medium(round(self.gap_us * 1000), self.turn_packets)

    @property
    def needs_guest(self) -> bool:
        """True: the order of arrivals, to the nanosecond, decides which end holds the medium."""
        return True

    def shaper(self, interface: Interface, link: Link, place: Place) -> Shaper:
        """Build a queue at one end of a link, whose medium has a place."""
        medium, rate = self.medium, round(link.start_mbit * 1e6) // 8
        said = {
            "number": place.number,
            "gap_ns": medium.gap_ns,
            "turn_packets": medium.turn_packets,
            "rate": rate,
            "overhead": link.shaper_overhead,
            "limit": link.queue_packets,
        }
        words = (
            f"medium number {place.number} gap {medium.gap_ns}ns turn {medium.turn_packets} "
            f"rate {8 * rate}bit overhead {link.shaper_overhead} "
            f"limit {link.queue_packets}"
        )
        shaper = Shaper(interface, tuple(words.split()), options("medium", said), is_ours=True)
        return shaper.in_namespace(place.node)
