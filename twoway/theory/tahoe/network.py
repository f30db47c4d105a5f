"""Two nodes, the link between them, and the connections that share its queues.

Data and ACKs wait in one first-in-first-out queue at each node, which drops packets when full. The
packet in transmission counts. Events at the same time happen in the order in which they were
caused. A receiver sends an ACK for every segment, or delayed ones as Linux:

    a second segment arrives     an ACK at once
    40 ms pass after the first   an ACK
    out of order, or a gap       an ACK at once

Linux begins without delay, for as many segments as half of its window holds, at most 16
(tcp_input.c, tcp_incr_quickack).
"""

import heapq
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from twoway.theory.tahoe.sender import FixedWindow, Tahoe
from twoway.theory.tahoe.timers import MS, Timer

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


@dataclass(frozen=True)
class Link:
    """One direction: transmission times, propagation delay, and packets the queue may hold."""

    data_ns: int = 80 * MS
    ack_ns: int = 8 * MS
    delay_ns: int = 10 * MS
    limit: int = 20


@dataclass
class Connection:
    """A sender at a node, and its receiver at the other.

    Attributes:
        node: the sender's node, 0 or 1.
        sent_to: the next segment that has never been sent.
        deadline: time at which the retransmission timer fires; None if it is not running.
        flight: times, and from each on the segments from the oldest unacknowledged to the newest
            sent.
        acks: times at which each ACK was sent and at which it arrived.
    """

    node: int
    timer: Timer
    start_ns: int
    sender: Tahoe | FixedWindow
    receiver: Receiver = field(default_factory=Receiver)
    sent_to: int = 0
    deadline: int | None = None
    flight: list[tuple[int, int]] = field(default_factory=list)
    acks_sent: list[int] = field(default_factory=list)
    acks_arrived: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class Packet:
    """A packet in a queue or on its path: data of a connection, or an ACK for it."""

    kind: str
    connection: int
    number: int


@dataclass
class Direction:
    """One direction of the link: the queue at its start, and what left or was dropped.

    Attributes:
        queue: the packet in transmission first.
        busy: time for which the line transmits in the watched window, ns.
        drops: times, and packets that met a full queue, since time zero.
        lengths: times, and from each on the packets in the queue.
        left: times at which transmissions ended, and their packets.
    """

    link: Link
    queue: deque[Packet] = field(default_factory=deque)
    busy: int = 0
    drops: list[tuple[int, Packet]] = field(default_factory=list)
    lengths: list[tuple[int, int]] = field(default_factory=lambda: [(0, 0)])
    left: list[tuple[int, Packet]] = field(default_factory=list)


class Network:
    """Both nodes and the link between them.

    Args:
        links: the directions, by the sending node.
        connections: the connections of both nodes.
        watch_ns: start and end of the time in which `busy` counts.
    """

    def __init__(
        self, links: tuple[Link, Link], connections: Sequence[Connection], watch_ns: tuple[int, int]
    ) -> None:
        self.watch_ns, self.connections = watch_ns, connections
        self.directions = [Direction(link) for link in links]
        self.events: list[tuple[int, int, str, Packet]] = []
        self.order = 0
        for number, connection in enumerate(connections):
            self._schedule(connection.start_ns, "start", Packet("", number, 0))

    def run(self) -> "Network":
        """Run from time zero to the end of the watched window."""
        while self.events[0][0] < self.watch_ns[1]:
            now, _, what, packet = heapq.heappop(self.events)
            connection = self.connections[packet.connection]
            if what == "start":
                self._send(now, packet.connection, connection.sender.send())
            elif what == "transmitted":
                self._transmitted(now, packet)
            elif what == "data":
                self._arrive(now, packet)
            elif what == "held":
                self._reply(now, packet.connection, connection.receiver.timed_out(now))
            elif what == "ack":
                self._acknowledge(now, packet.connection, packet.number)
            elif what == "timer" and connection.deadline == now:
                connection.timer.timed_out()
                self._send(now, packet.connection, connection.sender.time_out())
                self._start_timer(now, packet.connection)
        return self

    def _schedule(self, time: int, what: str, packet: Packet) -> None:
        self.order += 1
        heapq.heappush(self.events, (time, self.order, what, packet))

    def _start_timer(self, now: int, number: int) -> None:
        connection = self.connections[number]
        connection.deadline = connection.timer.expires(now)
        self._schedule(connection.deadline, "timer", Packet("", number, 0))

    def _arrive(self, now: int, packet: Packet) -> None:
        receiver = self.connections[packet.connection].receiver
        self._reply(now, packet.connection, receiver.take(packet.number, now))
        if receiver.held_since == now:
            self._schedule(now + HELD_NS, "held", packet)

    def _reply(self, now: int, number: int, ack: int | None) -> None:
        if ack is not None:
            self.connections[number].acks_sent.append(now)
            self._enqueue(now, Packet("ack", number, ack))

    def _acknowledge(self, now: int, number: int, ack: int) -> None:
        connection = self.connections[number]
        connection.acks_arrived.append(now)
        una, was = connection.sender.una, connection.sender.highest
        sent = connection.sender.acknowledge(ack)
        if ack > una:
            connection.timer.note_acked(una, ack, was, now)
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
                connection.timer.note_sent(segment, now)
                connection.sent_to = segment + 1
            self._enqueue(now, Packet("data", number, segment))
        connection.flight.append((now, connection.sent_to - connection.sender.una))
        if segments and connection.deadline is None:
            self._start_timer(now, number)

    def _direction(self, packet: Packet) -> Direction:
        """Find the queue that a packet passes: ACKs leave from the receiver's node."""
        node = self.connections[packet.connection].node
        return self.directions[node if packet.kind == "data" else 1 - node]

    def _enqueue(self, now: int, packet: Packet) -> None:
        direction = self._direction(packet)
        if len(direction.queue) == direction.link.limit:
            direction.drops.append((now, packet))
            return
        direction.queue.append(packet)
        direction.lengths.append((now, len(direction.queue)))
        if len(direction.queue) == 1:
            self._transmit(now, direction)

    def _transmitted(self, now: int, packet: Packet) -> None:
        direction = self._direction(packet)
        direction.queue.popleft()
        direction.lengths.append((now, len(direction.queue)))
        direction.left.append((now, packet))
        self._schedule(now + direction.link.delay_ns, packet.kind, packet)
        if direction.queue:
            self._transmit(now, direction)

    def _transmit(self, now: int, direction: Direction) -> None:
        packet = direction.queue[0]
        end = now + (direction.link.data_ns if packet.kind == "data" else direction.link.ack_ns)
        start, stop = self.watch_ns
        direction.busy += max(min(end, stop) - max(now, start), 0)
        self._schedule(end, "transmitted", packet)
