"""A packet-level model of two opposite connections with fixed windows.

Two nodes, with a first-in-first-out queue and a store-and-forward link in each direction; data and
the other connection's ACKs share the queue. Arithmetic is exact and rational. The closed forms are
tested against this model, which shares no code with them. Only the model gives the queues, which
depend on ACK time and on the phase of the starts.
"""

import heapq
import math
from collections import deque
from dataclasses import dataclass
from fractions import Fraction

# At the same time, departures come before arrivals.
_SENT, _ARRIVED = 0, 1
_DATA, _ACK = 0, 1
# Largest gap between two ACKs of a bunch, in transmission times of an ACK, as in `ack_bunch_max`.
BUNCH_ACKS = 2


@dataclass(frozen=True)
class Sender:
    """One node as a sender: its window and its link.

    Attributes:
        window: segments that the node's connection keeps in flight.
        data, ack: transmission times of a segment and of an ACK on the node's link.
        delay: propagation delay to the other node.
        start: time at which the node sends its first window.
        ack_first: True if an ACK waits only for the packet in transmission, ahead of all data.
    """

    window: int
    data: Fraction
    ack: Fraction
    delay: Fraction
    start: Fraction = Fraction(0)
    ack_first: bool = False

    @property
    def burst(self) -> Fraction:
        """Transmission time of the window."""
        return self.window * self.data


@dataclass(frozen=True)
class Outcome:
    """Measurements of a node's queue and link in the watched window.

    Attributes:
        busy: time for which the link transmitted.
        queue_peak: most packets in the queue, the one in transmission included.
        data_peak: most data packets in the queue.
        cluster_starts: times at which the first data after an ACK had left.
        cluster_peaks: most data packets in the queue during each of these clusters.
        data_sent: data packets that left.
        ack_bunch: largest number of ACKs that left at most two of their transmission times apart.
    """

    busy: Fraction
    queue_peak: int
    data_peak: int
    cluster_starts: tuple[Fraction, ...]
    cluster_peaks: tuple[int, ...]
    data_sent: int
    ack_bunch: int


def simulate(
    senders: tuple[Sender, Sender], watch: tuple[Fraction, Fraction]
) -> tuple[Outcome, Outcome]:
    """Run the model from time zero to the end of the watched window.

    Args:
        senders: the two nodes; data of one is acknowledged by the other.
        watch: start and end of the window that is measured.
    """
    times = [t for s in senders for t in (s.data, s.ack, s.delay, s.start)]
    unit = Fraction(1, math.lcm(*(t.denominator for t in (*times, *watch))))
    nodes = [_Node(sender, watch, unit) for sender in senders]
    events: list[tuple[int, int, int, int]] = []
    for number, node in enumerate(nodes):
        heapq.heappush(events, (node.start, _ARRIVED, number, -1))
    while events and events[0][0] < nodes[0].stop:
        time, what, number, packet = heapq.heappop(events)
        node = nodes[number]
        if what == _SENT:
            packet = node.end_transmission(time)
            heapq.heappush(events, (time + node.delay, _ARRIVED, 1 - number, packet))
            following = node.next_end(time)
        else:  # data is acknowledged at once; an ACK releases a segment, the start a window
            came = [_ACK] if packet == _DATA else [_DATA] * (node.window if packet < 0 else 1)
            idle = not node.queue
            for each in came:
                node.enqueue(time, each)
            following = node.next_end(time) if idle else None
        if following is not None:
            heapq.heappush(events, (following, _SENT, number, 0))
    first, second = (node.outcome(unit) for node in nodes)
    return first, second


class _Node:
    """A queue and its link, in whole units of time."""

    def __init__(self, sender: Sender, watch: tuple[Fraction, Fraction], unit: Fraction) -> None:
        self.window, self._ack_first = sender.window, sender.ack_first
        self._length = {_DATA: int(sender.data / unit), _ACK: int(sender.ack / unit)}
        self.delay, self.start = int(sender.delay / unit), int(sender.start / unit)
        self._from, self.stop = (int(t / unit) for t in watch)
        self.queue: deque[int] = deque()
        self._data = self._peak = self._data_peak = self._busy = 0
        self._last = _DATA
        self._clusters: list[int] = []
        self._peaks: list[int] = []
        self._data_sent = self._bunch = self._longest_bunch = 0
        self._ack_time = -self._length[_ACK] * BUNCH_ACKS - 1

    def enqueue(self, time: int, packet: int) -> None:
        place = len(self.queue)
        if self._ack_first and packet == _ACK and place:
            place = next((n for n in range(1, place) if self.queue[n] == _DATA), place)
        self.queue.insert(place, packet)
        self._data += packet == _DATA
        if time >= self._from:
            self._peak = max(self._peak, len(self.queue))
            self._data_peak = max(self._data_peak, self._data)

    def next_end(self, time: int) -> int | None:
        """Begin the next transmission; return its end, None if the queue is empty."""
        if not self.queue:
            return None
        end = time + self._length[self.queue[0]]
        self._busy += max(min(end, self.stop) - max(time, self._from), 0)
        return end

    def end_transmission(self, time: int) -> int:
        """End a transmission; return its packet."""
        packet = self.queue.popleft()
        if time >= self._from:
            self._count_data(time) if packet == _DATA else self._count_ack(time)
        self._data -= packet == _DATA
        self._last = packet
        return packet

    def _count_data(self, time: int) -> None:
        self._data_sent += 1
        if self._last == _ACK:
            self._clusters.append(time)
            self._peaks.append(self._data)
        elif self._peaks:
            self._peaks[-1] = max(self._peaks[-1], self._data)

    def _count_ack(self, time: int) -> None:
        near = time - self._ack_time <= BUNCH_ACKS * self._length[_ACK]
        self._bunch = self._bunch + 1 if near else 1
        self._longest_bunch = max(self._longest_bunch, self._bunch)
        self._ack_time = time

    def outcome(self, unit: Fraction) -> Outcome:
        clusters = tuple(time * unit for time in self._clusters)
        return Outcome(
            busy=self._busy * unit,
            queue_peak=self._peak,
            data_peak=self._data_peak,
            cluster_starts=clusters,
            cluster_peaks=tuple(self._peaks),
            data_sent=self._data_sent,
            ack_bunch=self._longest_bunch,
        )
