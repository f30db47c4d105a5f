"""A packet-level model of two opposite connections with fixed windows.

Two nodes, with a first-in-first-out queue and a store-and-forward link in each direction; data and
the other connection's ACKs share the queue. Arithmetic is exact and rational. The closed forms are
tested against this model, which shares no code with them. Only the model has the queues, which
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


@dataclass(frozen=True)
class Side:
    """One node: its window and its link.

    Attributes:
        window: segments that the node's connection keeps in flight.
        data, ack: transmission times of a segment and of an ACK on the node's link.
        delay: propagation delay to the other node.
        start: when the node sends its first window.
    """

    window: int
    data: Fraction
    ack: Fraction
    delay: Fraction
    start: Fraction = Fraction(0)

    @property
    def burst(self) -> Fraction:
        """Transmission time of the window."""
        return self.window * self.data


@dataclass(frozen=True)
class Outcome:
    """Measurements of a node's queue and link in the watched window.

    Attributes:
        busy: how long the link transmitted.
        queue_peak: most packets in the queue, the one in transmission included.
        data_peak: most data packets in the queue.
        cluster_starts: times at which the first data after an ACK had left.
    """

    busy: Fraction
    queue_peak: int
    data_peak: int
    cluster_starts: tuple[Fraction, ...]


def simulate(sides: tuple[Side, Side], watch: tuple[Fraction, Fraction]) -> tuple[Outcome, Outcome]:
    """Run the model from time zero to the end of the watched window.

    Args:
        sides: the two nodes; data of one is acknowledged by the other.
        watch: start and end of the window that is measured.
    """
    times = [t for s in sides for t in (s.data, s.ack, s.delay, s.start)]
    unit = Fraction(1, math.lcm(*(t.denominator for t in (*times, *watch))))
    nodes = [_Node(side, watch, unit) for side in sides]
    events: list[tuple[int, int, int, int]] = []
    for number, node in enumerate(nodes):
        heapq.heappush(events, (node.start, _ARRIVED, number, -1))
    while events and events[0][0] < nodes[0].stop:
        time, what, number, packet = heapq.heappop(events)
        node = nodes[number]
        if what == _SENT:
            packet = node.sent(time)
            heapq.heappush(events, (time + node.delay, _ARRIVED, 1 - number, packet))
            following = node.next_end(time)
        else:  # data are acknowledged at once; an ACK releases a segment, the start a window
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

    def __init__(self, side: Side, watch: tuple[Fraction, Fraction], unit: Fraction) -> None:
        self.window = side.window
        self._length = {_DATA: int(side.data / unit), _ACK: int(side.ack / unit)}
        self.delay, self.start = int(side.delay / unit), int(side.start / unit)
        self._from, self.stop = (int(t / unit) for t in watch)
        self.queue: deque[int] = deque()
        self._data = self._peak = self._data_peak = self._busy = 0
        self._last = _DATA
        self._clusters: list[int] = []

    def enqueue(self, time: int, packet: int) -> None:
        self.queue.append(packet)
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

    def sent(self, time: int) -> int:
        """End a transmission; return its packet."""
        packet = self.queue.popleft()
        self._data -= packet == _DATA
        if packet == _DATA and self._last == _ACK and time >= self._from:
            self._clusters.append(time)
        self._last = packet
        return packet

    def outcome(self, unit: Fraction) -> Outcome:
        clusters = tuple(time * unit for time in self._clusters)
        return Outcome(self._busy * unit, self._peak, self._data_peak, clusters)
