"""4.3BSD-Tahoe's sender, from the pseudo-code of Zhang, Shenker and Clark (1991, section 2.1).

In segments and exact fractions; no code shared with the kernel module. What the paper leaves out is
BSD's: the third duplicate ACK sends one segment from snd_una, whatever else is outstanding, and
sending goes on where it had got to; the timer sends everything again from snd_una.
"""

from collections import Counter, deque
from dataclasses import dataclass, field
from fractions import Fraction

from scripted_receiver import LATENESS, Receiver, Scenario

INFINITE = 0x7FFFFFFF  # TCP_INFO's ssthresh before any loss
DUPACKS = 3


@dataclass
class Tahoe:
    """The sender.

    Attributes:
        offered: the receiver's window.
        fast_retransmit: whether the third duplicate ACK means a loss.
        bsd: 1/cwnd instead of 1/floor(cwnd).
        through: slow start goes on at cwnd == ssthresh, as BSD's.
    """

    offered: int
    fast_retransmit: bool
    bsd: bool
    through: bool = False
    cwnd: Fraction = Fraction(1)
    ssthresh: int = INFINITE
    una: int = 0
    next: int = 0
    highest: int = 0
    written: int = 0
    duplicates: int = 0
    # Up to here, what the timer repeats may already have arrived. Linux does not count the
    # duplicates that follow from that; BSD would.
    repeated: int = 0

    def send(self) -> list[int]:
        """What the window lets go."""
        last = min(self.una + min(int(self.cwnd), self.offered), self.written)
        sent = list(range(self.next, last))
        self.next = max(self.next, last)
        self.highest = max(self.highest, self.next)
        return sent

    def acknowledge(self, ack: int) -> list[int]:
        """An ACK arrives; what is sent."""
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

    def _share(self) -> Fraction:
        if self.bsd:
            # To a double's precision: exact, its digits would double with each ACK.
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

    def time_out(self) -> list[int]:
        """The retransmission timer fires; what is sent."""
        self._loss()
        self.duplicates = 0
        self.repeated = self.highest
        self.next = self.una
        return self.send()

    def _loss(self) -> None:
        self.ssthresh = max(min(int(self.cwnd), self.offered) // 2, 2)
        self.cwnd = Fraction(1)

    def reported_cwnd(self) -> int:
        """What TCP_INFO shows: the window less duplicates; with the fast retransmission, flight."""
        if self.fast_retransmit and self.duplicates == DUPACKS:
            return self.highest - self.una - DUPACKS
        return max(int(self.cwnd) - self.duplicates, 1)


@dataclass
class ModelPath:
    """The path and the receiver of `scripted_receiver`, around the model."""

    scenario: Scenario
    path: deque[int] = field(default_factory=deque)
    trace: list[tuple[str, int, list[int], int, int]] = field(default_factory=list)

    def run(self) -> list[tuple[str, int, list[int], int, int]]:
        """Event, ack, segments sent, cwnd and ssthresh, step by step."""
        scenario = self.scenario
        sender = Tahoe(
            offered=scenario.offered,
            fast_retransmit=scenario.congestion == "tahoe",
            bsd="growth=bsd" in scenario.parameters,
            through="slow_start=bsd" in scenario.parameters,
        )
        receiver = Receiver()
        lost, late = Counter(scenario.lost), Counter(scenario.late)
        for segments in scenario.writes:
            if sender.written:
                sender.cwnd = Fraction(1)  # idle for longer than the timer
            sender.written += segments
            self._note("write", sender, sender.send())
            while receiver.next < sender.written:
                if not self.path:
                    self._note("timeout", sender, sender.time_out())
                segment = self.path.popleft()
                if lost[segment]:
                    lost[segment] -= 1
                    continue
                if late[segment]:
                    late[segment] -= 1
                    self.path.insert(LATENESS, segment)
                    continue
                self._note("ack", sender, sender.acknowledge(receiver.take(segment)))
        return self.trace

    def _note(self, event: str, sender: Tahoe, sent: list[int]) -> None:
        self.path.extend(sent)
        self.trace.append((event, sender.una, sent, sender.reported_cwnd(), sender.ssthresh))
