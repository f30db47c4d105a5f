"""A half-duplex medium that both ends of a link share: which end sends when.

One packet is sent at a time. A turn holds the medium for the gap once and then for each packet's
bits; it goes on while the next packet of its end has arrived when one has been sent, up to a number
of packets. Then, and when a packet comes to an idle medium, the other end's turn comes if a packet
has arrived there, or else the same end's again. The kernel's sch_medium decides from counts of
waiting packets whenever something happens; here times of arrival alone decide.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from twoway.contract.model import Model

IntArray = NDArray[np.int64]
_NS = 10**9
_NEVER = float("inf")


class Hold(NamedTuple):
    """A packet's hold of the medium.

    Attributes:
        end: the end that sends it, 0 or 1.
        start_ns: when the medium is its end's, gap included.
        sent_ns: when its last bit has been sent.
    """

    end: int
    start_ns: int
    sent_ns: int


@dataclass(frozen=True)
class Medium:
    """A half-duplex medium.

    Attributes:
        gap_ns: what a turn takes before its first bit.
        turn_packets: packets of a turn at most.
    """

    gap_ns: int
    turn_packets: int

    def holds(self, arrived_ns: Sequence[IntArray], bits_ns: Sequence[IntArray]) -> Iterator[Hold]:
        """Replay the medium.

        Args:
            arrived_ns: of each end, shape (n,), when its packets arrive, ascending. End 0 is the
                one that joined first, which has the first turn.
            bits_ns: of each end, shape (n,), what its packets' bits take.

        Returns: the packets in the order in which they are sent.
        """
        # Plain numbers: a step looks at one packet of each end.
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
    """Compute what packets' bits take, cut to whole ns upwards.

    Args:
        link_bytes: shape (n,), their sizes on the link.
        rate_bit: the rate, of which the kernel has whole bytes/s.
    """
    return np.asarray(-(-link_bytes.astype(np.int64) * _NS // (rate_bit // 8)))


class HalfDuplex(Model):
    """One medium for both directions of a link: one packet at a time, the ends take turns.

    There are no collisions and no random back-off.
    """

    gap_us: Annotated[float, Field(ge=0, le=10_000_000, multiple_of=1e-3)] = Field(
        description="what a turn takes before its first bit: access time, preamble, space between "
        "frames; us, to the nanosecond"
    )
    turn_packets: Annotated[int, Field(ge=1, le=65535)] = Field(
        default=1, description="packets that an end sends in its turn at most, for one gap"
    )

    @property
    def medium(self) -> Medium:
        """The medium, in whole ns."""
        return Medium(round(self.gap_us * 1000), self.turn_packets)
