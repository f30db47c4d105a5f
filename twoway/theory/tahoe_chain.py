"""A packet-level model of one Tahoe connection over several drop-tail queues in a row.

Barakat and Altman's inequality ends slow start's burst where the window reaches its threshold. On
the wire the packets that follow, now at the rate of ACKs, still find queues in the nodes, and reach
the bottleneck as fast as those before them. This model has each packet, so that it says where slow
start loses, how much, and what the repair costs.

Every queue is first in, first out, and ACKs never queue. So a packet's fate is known when it is
sent: it leaves each queue one transmission after the packet before it or after its own arrival,
whichever is later, and is lost if the packet that is `limit` places before it has not left. No
events are needed but ACKs and the timer.

    ACK of new data    w < ssthresh ? w += 1 : one in each floor(w) ACKs adds 1
    loss               ssthresh = max(w / 2, 2), w = 1; found by the timer, which repeats all from
                       the oldest; with `fast_retransmit` also by the third duplicate ACK, which
                       repeats one segment
    timer              Linux's: srtt + max(4 rttvar, 200 ms) after the last ACK of new data, and
                       half a step of the timer wheel, whose phase is not known

The model shares no code with the kernel module or with `barakat`. Times are whole ns.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from twoway.theory.tahoe.timers import LinuxTimer

_INFINITE = 1 << 30
_DUPLICATES = 3
# Linux's timer wheel has steps of 64 ms for timers of 0.512 to 4.096 s, and rounds up: on average a
# timer is late by half a step.
_LATENESS_NS = 32_000_000


@dataclass(frozen=True)
class Hop:
    """A queue with its link.

    Attributes:
        service_ns: transmission time of a full segment.
        limit: the most packets in the queue, the one in transmission included.
    """

    service_ns: int
    limit: int


@dataclass
class Course:
    """The events of a connection.

    Attributes:
        arrived_ns: when payload arrived that had not been seen before, sorted.
        lost_ns: when each lost packet was sent, sorted.
        lost_at: in which queue each was lost, by index.
        windows: (time, segments sent and not acknowledged) whenever segments were sent.
        first_loss_window: segments from the oldest unacknowledged to the first one lost.
    """

    arrived_ns: list[int] = field(default_factory=list)
    lost_ns: list[int] = field(default_factory=list)
    lost_at: list[int] = field(default_factory=list)
    windows: list[tuple[int, int]] = field(default_factory=list)
    first_loss_window: int = 0


def simulate(
    hops: Sequence[Hop], back_ns: int, stop_ns: int, *, fast_retransmit: bool = False
) -> Course:
    """Run the connection from its first segment on.

    Args:
        hops: the queues, in order.
        back_ns: time from the end of the last transmission to the ACK's arrival at the sender.
        stop_ns: when to stop; the connection starts at 0.
        fast_retransmit: whether the third duplicate ACK means a loss.
    """
    sender = _Sender(_Pipe(hops, back_ns), fast_retransmit=fast_retransmit)
    sender.run(stop_ns)
    return sender.course


class _Pipe:
    """The queues, the receiver, and the ACKs on their way."""

    def __init__(self, hops: Sequence[Hop], back_ns: int) -> None:
        self.back_ns = back_ns
        self.trip_ns = back_ns + sum(hop.service_ns for hop in hops)
        # The last `limit` departures of a queue: full if the first of them is still to come.
        self._queues = [(hop.service_ns, deque([0] * hop.limit, hop.limit)) for hop in hops]
        self._expected = 0
        self._early: set[int] = set()
        self.acks: deque[tuple[int, int]] = deque()

    def carry(self, segment: int, now: int, course: Course) -> bool:
        """Send a segment; note its loss, or its arrival and its ACK.

        Returns: whether it arrives.
        """
        time = now
        for place, (service_ns, departures) in enumerate(self._queues):
            if departures[0] > time:
                course.lost_ns.append(now)
                course.lost_at.append(place)
                return False
            last = departures[-1]
            time = (max(time, last)) + service_ns
            departures.append(time)
        if segment == self._expected:
            self._expected += 1
            while self._expected in self._early:
                self._early.remove(self._expected)
                self._expected += 1
            course.arrived_ns.append(time)
        elif segment > self._expected and segment not in self._early:
            self._early.add(segment)
            course.arrived_ns.append(time)
        self.acks.append((time + self.back_ns, self._expected))
        return True


class _Sender:
    """Tahoe."""

    def __init__(self, pipe: _Pipe, *, fast_retransmit: bool) -> None:
        self._pipe, self._fast = pipe, fast_retransmit
        self.course = Course()
        self._window, self._share, self._threshold = 1, 0, _INFINITE
        self._oldest = self._next = self._highest = self._repeated = 0
        self._duplicates = 0
        self._timer = LinuxTimer()
        self._timer.sample(pipe.trip_ns // 1000, 0, 0)  # the handshake

    def run(self, stop_ns: int) -> None:
        acks = self._pipe.acks
        self._send(0)
        deadline = self._fires(0)
        while True:
            if acks and acks[0][0] <= deadline:
                now, ack = acks.popleft()
                if now >= stop_ns:
                    return
                if self._acknowledge(ack, now):
                    deadline = self._fires(now)
            else:
                now = deadline
                if now >= stop_ns:
                    return
                self._lose()
                self._duplicates = 0
                self._repeated, self._next = self._highest, self._oldest
                self._timer.timed_out()
                self._send(now)
                deadline = self._fires(now)

    def _acknowledge(self, ack: int, now: int) -> bool:
        """Take an ACK; tell whether the timer starts again."""
        if ack <= self._oldest:
            return self._duplicate(now)
        self._duplicates = 0
        self._timer.note_acked(self._oldest, ack, self._highest, now)
        self._oldest = ack
        self._next = max(self._next, ack)
        if self._window < self._threshold:
            self._window += 1
        else:
            self._share += 1
            if self._share >= self._window:
                self._window, self._share = self._window + 1, 0
        self._send(now)
        return True

    def _duplicate(self, now: int) -> bool:
        if not self._fast or self._oldest == self._highest or self._oldest <= self._repeated:
            return False
        self._duplicates += 1
        if self._duplicates != _DUPLICATES:
            return False
        self._lose()
        self._carry(self._oldest, now)
        return True

    def _lose(self) -> None:
        self._threshold = max(self._window // 2, 2)
        self._window, self._share = 1, 0

    def _send(self, now: int) -> None:
        end = self._oldest + self._window
        while self._next < end:
            self._carry(self._next, now)
            self._next += 1
        self._highest = max(self._highest, self._next)
        self.course.windows.append((now, self._highest - self._oldest))

    def _carry(self, segment: int, now: int) -> None:
        if segment < self._highest:
            self._timer.retransmits(segment)
        else:
            self._timer.note_sent(segment, now)
        if not self._pipe.carry(segment, now, self.course) and not self.course.first_loss_window:
            self.course.first_loss_window = segment + 1 - self._oldest

    def _fires(self, now: int) -> int:
        """Return when a timer that starts now fires."""
        return self._timer.expires(now) + _LATENESS_NS
