"""An independent packet-level model of Tahoe connections, either way over drop-tail queues.

The sender of `tahoe_model` at either end of Zhang, Shenker and Clark's link, with Linux's
retransmission timer or 4.3BSD's. Integer nanoseconds, no code shared with the testbed.
"""

import heapq
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from scripted_receiver import Receiver
from tahoe_model import Tahoe

MS, S = 1_000_000, 1_000_000_000
ENDLESS = 1 << 40


@dataclass(frozen=True)
class Link:
    """Either direction: transmission times, propagation delay, and packets the queue may hold."""

    data_ns: int = 80 * MS
    ack_ns: int = 8 * MS
    delay_ns: int = 10 * MS
    limit: int = 20


class Timer(Protocol):
    """A rule for the retransmission timer."""

    def sent(self, segment: int, now: int) -> None:
        """A segment is sent for the first time."""

    def acked(self, first: int, end: int, highest: int, now: int) -> None:
        """Segments from first up to end are acknowledged; highest is the next new one."""

    def retransmits(self, segment: int) -> None:
        """A segment is sent again."""

    def timed_out(self) -> None:
        """The timer has fired."""

    def expires(self, now: int) -> int:
        """When a timer that is started now fires."""


@dataclass
class LinuxTimer:
    """srtt + max(4 rttvar, 200 ms) from each ACK of what was sent once, in us (tcp_input.c)."""

    least: int = 200_000
    srtt: int = 0
    mdev: int = 0
    mdev_max: int = 0
    rttvar: int = 0
    marked: int = 0
    rto: int = 1_000_000
    times: dict[int, int] = field(default_factory=dict)

    def sent(self, segment: int, now: int) -> None:
        """Remember when."""
        self.times[segment] = now

    def retransmits(self, segment: int) -> None:
        """Forget when: whose ACK it will be cannot be told."""
        self.times.pop(segment, None)

    def acked(self, first: int, end: int, highest: int, now: int) -> None:
        """A sample from the first acknowledged, if none was sent again."""
        times = [self.times.pop(segment, None) for segment in range(first, end)]
        if None in times or times[0] is None:
            return
        self._sample((now - times[0]) // 1000, end, highest)
        self.rto = (self.srtt >> 3) + self.rttvar

    def _sample(self, rtt: int, una: int, highest: int) -> None:
        if not self.srtt:
            self.srtt, self.mdev = rtt << 3, rtt << 1
            self.mdev_max = self.rttvar = max(self.mdev, self.least)
            self.marked = highest
            return
        error = rtt - (self.srtt >> 3)
        self.srtt += error
        off = abs(error) - (self.mdev >> 2)
        self.mdev += off >> 3 if error < 0 < off else off
        self.mdev_max = max(self.mdev_max, self.mdev)
        self.rttvar = max(self.rttvar, self.mdev_max)
        if una > self.marked:
            self.rttvar -= (self.rttvar - self.mdev_max) >> 2
            self.marked, self.mdev_max = highest, self.least

    def timed_out(self) -> None:
        """Back off."""
        self.rto *= 2

    def expires(self, now: int) -> int:
        """After the timeout."""
        return now + self.rto * 1000


@dataclass
class BsdTimer:
    """srtt + 2 rttvar in ticks of 500 ms, at least 2, from one segment at a time (4.3BSD-Tahoe)."""

    tick: int = 500 * MS
    srtt: int = 0  # in 1/8 ticks
    rttvar: int = 24  # in 1/4 ticks: a first guess of 3 s
    shift: int = 0
    timed: tuple[int, int] | None = None

    def sent(self, segment: int, now: int) -> None:
        """Time it if no other is being timed."""
        if self.timed is None:
            self.timed = segment, now // self.tick

    def retransmits(self, segment: int) -> None:  # noqa: ARG002 - whichever it is
        """Stop timing."""
        self.timed = None

    def acked(self, first: int, end: int, highest: int, now: int) -> None:  # noqa: ARG002 - Timer
        """A sample, if the timed segment is among them."""
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
        """At a tick."""
        ticks = max((((self.srtt >> 2) + self.rttvar) >> 1) << self.shift, 2)
        return (now // self.tick + ticks) * self.tick


@dataclass
class Connection:
    """A sender at a node, and its receiver at the other."""

    node: int
    timer: Timer
    start_ns: int
    sender: Tahoe = field(
        default_factory=lambda: Tahoe(
            offered=1000, fast_retransmit=True, bsd=False, written=ENDLESS
        )
    )
    receiver: Receiver = field(default_factory=Receiver)
    sent_to: int = 0
    deadline: int | None = None


@dataclass(frozen=True)
class Packet:
    """In a queue or on its way: data of a connection, or an ACK for it."""

    kind: str
    connection: int
    number: int


@dataclass(frozen=True)
class Drop:
    """A packet that met a full queue."""

    time_ns: int
    packet: Packet


@dataclass
class Side:
    """One node's queue towards the other.

    Attributes:
        queue: the packet in transmission first.
        busy: time for which the line transmits in the watched window, ns.
        drops: all since time zero.
        lengths: when the queue's length changed, and to what.
    """

    queue: deque[Packet] = field(default_factory=deque)
    busy: int = 0
    drops: list[Drop] = field(default_factory=list)
    lengths: list[tuple[int, int]] = field(default_factory=list)


class Network:
    """Both nodes and the link between them.

    Args:
        link: either direction of it.
        connections: which node each sends from, its timer, its start.
        watch_ns: start and end of what is counted as busy.
    """

    def __init__(
        self, link: Link, connections: Sequence[Connection], watch_ns: tuple[int, int]
    ) -> None:
        self.link, self.watch_ns, self.connections = link, watch_ns, connections
        self.sides = [Side(), Side()]
        self.events: list[tuple[int, int, str, Packet]] = []
        self.order = 0
        for number, connection in enumerate(connections):
            self._at(connection.start_ns, "start", Packet("", number, 0))

    def run(self) -> list[Side]:
        """From time zero to the end of the watched window."""
        while self.events[0][0] < self.watch_ns[1]:
            now, _, what, packet = heapq.heappop(self.events)
            connection = self.connections[packet.connection]
            if what == "start":
                self._send(now, packet.connection, connection.sender.send())
            elif what == "transmitted":
                self._transmitted(now, packet)
            elif what == "data":
                ack = connection.receiver.take(packet.number)
                self._enqueue(now, Packet("ack", packet.connection, ack))
            elif what == "ack":
                self._acknowledge(now, packet.connection, packet.number)
            elif what == "timer" and connection.deadline == now:
                connection.timer.timed_out()
                self._send(now, packet.connection, connection.sender.time_out())
                self._start_timer(now, packet.connection)
        return self.sides

    def _at(self, time: int, what: str, packet: Packet) -> None:
        self.order += 1
        heapq.heappush(self.events, (time, self.order, what, packet))

    def _start_timer(self, now: int, number: int) -> None:
        connection = self.connections[number]
        connection.deadline = connection.timer.expires(now)
        self._at(connection.deadline, "timer", Packet("", number, 0))

    def _acknowledge(self, now: int, number: int, ack: int) -> None:
        connection = self.connections[number]
        una, was = connection.sender.una, connection.sender.highest
        sent = connection.sender.acknowledge(ack)
        if ack > una:
            connection.timer.acked(una, ack, was, now)
            connection.deadline = None
        if ack > una or sent == [una]:
            self._start_timer(now, number)
        self._send(now, number, sent)

    def _send(self, now: int, number: int, segments: list[int]) -> None:
        connection = self.connections[number]
        for segment in segments:
            if segment < connection.sent_to:
                connection.timer.retransmits(segment)
            else:
                connection.timer.sent(segment, now)
                connection.sent_to = segment + 1
            self._enqueue(now, Packet("data", number, segment))
        if segments and connection.deadline is None:
            self._start_timer(now, number)

    def _side(self, packet: Packet) -> Side:
        """Whose queue a packet passes: ACKs leave from the receiver's node."""
        node = self.connections[packet.connection].node
        return self.sides[node if packet.kind == "data" else 1 - node]

    def _enqueue(self, now: int, packet: Packet) -> None:
        side = self._side(packet)
        if len(side.queue) == self.link.limit:
            side.drops.append(Drop(now, packet))
            return
        side.queue.append(packet)
        side.lengths.append((now, len(side.queue)))
        if len(side.queue) == 1:
            self._transmit(now, side)

    def _transmitted(self, now: int, packet: Packet) -> None:
        side = self._side(packet)
        side.queue.popleft()
        side.lengths.append((now, len(side.queue)))
        self._at(now + self.link.delay_ns, packet.kind, packet)
        if side.queue:
            self._transmit(now, side)

    def _transmit(self, now: int, side: Side) -> None:
        packet = side.queue[0]
        end = now + (self.link.data_ns if packet.kind == "data" else self.link.ack_ns)
        start, stop = self.watch_ns
        side.busy += max(min(end, stop) - max(now, start), 0)
        self._at(end, "transmitted", packet)
