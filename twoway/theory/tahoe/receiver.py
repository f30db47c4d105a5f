"""The timing of a receiver's ACKs: for every segment, or delayed as by Linux.

    a second segment arrives     an ACK at once
    40 ms pass after the first   an ACK
    out of order, or a gap       an ACK at once

Linux begins without delay, for as many segments as half of its window holds, at most 16
(tcp_input.c, tcp_incr_quickack).
"""

from dataclasses import dataclass, field

from twoway.theory.tahoe.timers import MS

QUICK = 16
HELD_NS = 40 * MS


@dataclass
class Receiver:
    """The segments that arrived, and the cumulative acknowledgement for them.

    Attributes:
        delays: True if ACKs are delayed.
        quick: segments that are still acknowledged at once.
        held_since: arrival of the segment whose ACK is held back; None if none is.
    """

    delays: bool = False
    quick: int = QUICK
    arrived: set[int] = field(default_factory=set)
    next: int = 0
    held_since: int | None = None

    def take(self, segment: int, now: int) -> int | None:
        """Take a segment; return the ACK to send, None if it is held back."""
        in_order = segment == self.next and not self.arrived
        if segment >= self.next:
            self.arrived.add(segment)
        while self.next in self.arrived:
            self.arrived.remove(self.next)
            self.next += 1
        first = self.held_since is None
        self.quick -= 1
        if self.delays and in_order and first and self.quick < 0:
            self.held_since = now
            return None
        self.held_since = None
        return self.next

    def timed_out(self, now: int) -> int | None:
        """Let the timer of an ACK fire; return the ACK that is still held back."""
        if self.held_since is None or self.held_since + HELD_NS != now:
            return None
        self.held_since = None
        return self.next
