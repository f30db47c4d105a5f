"""A separate queue for ACKs, tc's remedy for ACK compression.

netem decides when a packet leaves as the packet enters, so nothing can overtake in it. Here HTB
keeps the rate and takes packets from two queues. HTB lets a packet go when its transmission begins,
with no credit for idle time (a burst of one byte); the netem that adds the link's propagation delay
then adds the transmission time as well (decision 0009).
"""

from collections.abc import Iterator
from typing import Any, ClassVar, Literal

from twoway.links.element import Link, QueueByWord
from twoway.links.shaper import INSIDE

# TCP packets below 128 bytes: a pure ACK has 40 bytes (IPv6: 60), and at most 40 of options.
_ARE_ACKS = (
    "prio 1 protocol ip u32 match ip protocol 6 0xff match u16 0 0xff80 at 2",
    # IPv6 counts the bytes that follow its header.
    "prio 2 protocol ipv6 u32 match ip6 protocol 6 0xff match u16 0 0xffc0 at 4",
)
_BANDS = {
    # Strict priority: ACKs (band 1) first, data (band 2) if no ACK waits.
    "priority": ("prio bands 2 priomap" + " 1" * 16, ()),
    # In turn: ACKs up to one MTU in total, then one segment of data.
    "own": ("drr", ("1", "2")),
}


class AckQueue(QueueByWord):
    """Two queues, one for ACKs and one for the other packets."""

    FIELD: ClassVar = "ack_queue"
    TITLE: ClassVar = "A queue for ACKs"
    DESCRIPTION: ClassVar = (
        "the queue in which ACKs wait: one first-in-first-out queue with the data; their "
        "own, served in turn with the data's; or their own, served first. Each of two queues "
        "has queue_packets"
    )
    WORDS: ClassVar[Any] = Literal["shared", "own", "priority"]
    USUAL: ClassVar = "shared"

    @property
    def transmits_behind(self) -> bool:
        """True: HTB lets a packet go when its transmission begins."""
        return True

    @property
    def has_own_delay(self) -> bool:
        """True: the delay adds the transmission time, which is known for one queue only."""
        return True

    def put_inside(self, dev: str, link: Link) -> tuple[str, ...]:
        """Build two queues, with a limit each."""
        return tuple(self._lines(dev, link))

    def limited(self, link: Link) -> tuple[tuple[str, str], ...]:
        """List both queues."""
        return tuple((f"parent 2:{n}", f"pfifo limit {link.queue_packets}") for n in (1, 2))

    def _lines(self, dev: str, link: Link) -> Iterator[str]:
        kind, classes = _BANDS[self.word]
        yield f"qdisc add dev {dev} {INSIDE} {kind}"
        for number in classes:
            yield f"class add dev {dev} parent 2: classid 2:{number} drr"
        for place, words in self.limited(link):
            yield f"qdisc add dev {dev} {place} {words}"
        for is_ack in _ARE_ACKS:
            yield f"filter add dev {dev} parent 2: {is_ack} flowid 2:1"
        if classes:
            yield f"filter add dev {dev} parent 2: prio 3 matchall flowid 2:2"
