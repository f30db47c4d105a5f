"""4.3BSD-Tahoe's sender, from the pseudo-code of Zhang, Shenker and Clark (1991, section 2.1).

    new ACK      cwnd += 1 if cwnd < ssthresh, else 1/floor(cwnd)
    a loss       ssthresh = MAX[MIN(cwnd/2, maxwnd), 2], cwnd = 1

Segments and exact fractions are used; no code is shared with the kernel module. Details that the
paper leaves out are BSD's: the third duplicate ACK sends one segment from snd_una, whatever else is
outstanding, and sending continues where it was; the timer sends everything again from snd_una.
"""

from dataclasses import dataclass
from fractions import Fraction

INFINITE = 0x7FFFFFFF  # TCP_INFO's ssthresh before any loss
DUPACKS = 3
ENDLESS = 1 << 40


@dataclass
class Tahoe:
    """The sender.

    Attributes:
        offered: the receiver's window, the paper's maxwnd.
        fast_retransmit: True if the third duplicate ACK means a loss.
        bsd: 1/cwnd instead of 1/floor(cwnd).
        through: True if slow start continues at cwnd == ssthresh, as in BSD.
        halves_sent: ssthresh = max(min(cwnd, offered) / 2, 2), as BSD's.
        written: segments that the application has written.
    """

    offered: int
    fast_retransmit: bool
    bsd: bool
    through: bool = False
    halves_sent: bool = False
    cwnd: Fraction = Fraction(1)
    ssthresh: int = INFINITE
    una: int = 0
    next: int = 0
    highest: int = 0
    written: int = 0
    duplicates: int = 0
    # Up to this segment, segments that the timer repeats may already have arrived. Linux does not
    # count the resulting duplicates; BSD would.
    repeated: int = 0

    def send(self) -> list[int]:
        """Send the segments that the window allows."""
        last = min(self.una + min(int(self.cwnd), self.offered), self.written)
        sent = list(range(self.next, last))
        self.next = max(self.next, last)
        self.highest = max(self.highest, self.next)
        return sent

    def acknowledge(self, ack: int) -> list[int]:
        """Take an ACK; return the segments that it releases."""
        if ack == self.una:
            return self._duplicate()
        self.duplicates = 0
        self.una = ack
        self.next = max(self.next, ack)
        if self.cwnd < self.ssthresh or (self.through and self.cwnd == self.ssthresh):
            self.cwnd += 1
        else:
            self.cwnd += self._share()
        return self.send()

    def time_out(self) -> list[int]:
        """Let the retransmission timer fire; return the segments to send."""
        self._loss()
        self.duplicates = 0
        self.repeated = self.highest
        self.next = self.una
        return self.send()

    def reported_cwnd(self) -> int:
        """Return TCP_INFO's window: without duplicates; with fast retransmission, the flight."""
        if self.fast_retransmit and self.duplicates == DUPACKS:
            return self.highest - self.una - DUPACKS
        return max(int(self.cwnd) - self.duplicates, 1)

    def _share(self) -> Fraction:
        if self.bsd:
            # Rounded to a double's precision: exact values would double their digits with each ACK.
            return Fraction(1 / float(self.cwnd))
        return Fraction(1, int(self.cwnd))

    def _duplicate(self) -> list[int]:
        if self.una == self.highest or self.una <= self.repeated:
            return []
        self.duplicates += 1
        if not self.fast_retransmit or self.duplicates != DUPACKS:
            return []
        self._loss()
        return [self.una]

    def _loss(self) -> None:
        cwnd = int(self.cwnd)
        sent = min(cwnd, self.offered)
        self.ssthresh = max(sent // 2 if self.halves_sent else min(cwnd // 2, self.offered), 2)
        self.cwnd = Fraction(1)


@dataclass
class FixedWindow:
    """A sender with a constant window and no losses.

    Attributes:
        window: segments in flight.
        una: the oldest unacknowledged segment.
        highest: the next new segment.
    """

    window: int
    una: int = 0
    highest: int = 0

    def send(self) -> list[int]:
        """Send the segments that the window allows."""
        first, self.highest = self.highest, self.una + self.window
        return list(range(first, self.highest))

    def acknowledge(self, ack: int) -> list[int]:
        """Take an ACK; return the segments that it releases."""
        self.una = max(self.una, ack)
        return self.send()

    def time_out(self) -> list[int]:
        """Ignore the timer: packets in a queue are not lost."""
        return []
