"""Two rules for the retransmission timer: Linux's, and 4.3BSD-Tahoe's with its coarse clock.

Zhang, Shenker and Clark (1991) do not describe theirs.
"""

from dataclasses import dataclass, field
from typing import Protocol

MS, S = 1_000_000, 1_000_000_000


class Timer(Protocol):
    """A rule for the retransmission timer."""

    def note_sent(self, segment: int, now: int) -> None:
        """Note that a segment is sent for the first time."""

    def note_acked(self, first: int, end: int, highest: int, now: int) -> None:
        """Note that segments from first up to end are acknowledged; highest is the next new one."""

    def retransmits(self, segment: int) -> None:
        """Note that a segment is sent again."""

    def timed_out(self) -> None:
        """Note that the timer has fired."""

    def expires(self, now: int) -> int:
        """Return when a timer that is started now fires, ns."""


@dataclass
class LinuxTimer:
    """srtt + max(4 rttvar, 200 ms) from each ACK of data sent once, in us (tcp_input.c)."""

    least: int = 200_000
    srtt: int = 0
    mdev: int = 0
    mdev_max: int = 0
    rttvar: int = 0
    marked: int = 0
    rto: int = 1_000_000
    times: dict[int, int] = field(default_factory=dict)

    def note_sent(self, segment: int, now: int) -> None:
        """Store the segment's send time, for the sample of the round trip."""
        self.times[segment] = now

    def retransmits(self, segment: int) -> None:
        """Drop the sample: after a retransmission the ACK is ambiguous (Karn)."""
        self.times.pop(segment, None)

    def note_acked(self, first: int, end: int, highest: int, now: int) -> None:
        """Take a sample from the first acknowledged segment, if none was retransmitted."""
        times = [self.times.pop(segment, None) for segment in range(first, end)]
        if None in times or times[0] is None:
            return
        self.sample((now - times[0]) // 1000, end, highest)

    def timed_out(self) -> None:
        """Back off."""
        self.rto *= 2

    def expires(self, now: int) -> int:
        """Add the timeout."""
        return now + self.rto * 1000

    def sample(self, rtt: int, una: int, highest: int) -> None:
        """Take a round trip, in us."""
        if not self.srtt:
            self.srtt, self.mdev = rtt << 3, rtt << 1
            self.mdev_max = self.rttvar = max(self.mdev, self.least)
            self.marked = highest
        else:
            error = rtt - (self.srtt >> 3)
            self.srtt += error
            off = abs(error) - (self.mdev >> 2)
            self.mdev += off >> 3 if error < 0 < off else off
            self.mdev_max = max(self.mdev_max, self.mdev)
            self.rttvar = max(self.rttvar, self.mdev_max)
            if una > self.marked:
                self.rttvar -= (self.rttvar - self.mdev_max) >> 2
                self.marked, self.mdev_max = highest, self.least
        self.rto = (self.srtt >> 3) + self.rttvar


@dataclass
class BsdTimer:
    """srtt + 2 rttvar in ticks of 500 ms, at least 2, from one segment at a time (4.3BSD-Tahoe)."""

    tick: int = 500 * MS
    srtt: int = 0  # in 1/8 ticks
    rttvar: int = 24  # in 1/4 ticks: a first guess of 3 s
    shift: int = 0
    timed: tuple[int, int] | None = None

    def note_sent(self, segment: int, now: int) -> None:
        """Time the segment if no other is being timed."""
        if self.timed is None:
            self.timed = segment, now // self.tick

    def retransmits(self, segment: int) -> None:  # noqa: ARG002 - whichever it is
        """Stop timing."""
        self.timed = None

    def note_acked(self, first: int, end: int, highest: int, now: int) -> None:  # noqa: ARG002 - Timer
        """Take a sample if the timed segment is acknowledged."""
        if self.timed is None or end <= self.timed[0]:
            return
        rtt = now // self.tick - self.timed[1] + 1
        if self.srtt:
            error = rtt - 1 - (self.srtt >> 3)
            self.srtt = max(self.srtt + error, 1)
            self.rttvar = max(self.rttvar + abs(error) - (self.rttvar >> 2), 1)
        else:
            self.srtt, self.rttvar = rtt << 3, rtt << 1
        self.timed, self.shift = None, 0

    def timed_out(self) -> None:
        """Back off."""
        self.shift += 1

    def expires(self, now: int) -> int:
        """Choose the tick."""
        ticks = max((((self.srtt >> 2) + self.rttvar) >> 1) << self.shift, 2)
        return (now // self.tick + ticks) * self.tick
