"""An independent packet-level model of two opposite fixed-window connections.

Two nodes, a first-in-first-out queue and a store-and-forward link each way; data and the other
connection's ACKs share the queue. Exact rational arithmetic, no code shared with the testbed: it is
what the closed forms in experiments/ are checked against.
"""

import heapq
from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True)
class Side:
    """One node: its window, its link's transmission times, and its link's propagation delay."""

    window: int
    data: Fraction
    ack: Fraction
    delay: Fraction
    start: Fraction = Fraction(0)


@dataclass(frozen=True)
class Outcome:
    """What a side's link did within the window that was watched."""

    busy: Fraction
    queue_peak: int
    queue_peak_data: int  # ACKs not counted
    cluster_starts: tuple[Fraction, ...]  # when the first data after an ACK left


def simulate(sides: tuple[Side, Side], watch: tuple[Fraction, Fraction]) -> tuple[Outcome, ...]:  # noqa: C901 - one loop over events reads best whole
    """Run the model from time zero to the end of the watched window.

    Args:
        sides: the two nodes; data of one is acknowledged by the other.
        watch: start and end of what is counted.
    """
    start, stop = watch
    queues: list[list[str]] = [[], []]
    peak, data_peak, busy = [0, 0], [0, 0], [Fraction(0), Fraction(0)]
    last = ["", ""]
    clusters: tuple[list[Fraction], list[Fraction]] = ([], [])
    events: list[tuple[Fraction, int, int, str]] = []
    order = 0

    def at(time: Fraction, node: int, what: str) -> None:
        nonlocal order
        order += 1
        heapq.heappush(events, (time, order, node, what))

    def enqueue(time: Fraction, node: int, packet: str) -> None:
        queues[node].append(packet)
        if time >= start:
            peak[node] = max(peak[node], len(queues[node]))
            data_peak[node] = max(data_peak[node], queues[node].count("data"))
        if len(queues[node]) == 1:
            transmit(time, node)

    def transmit(time: Fraction, node: int) -> None:
        side = sides[node]
        length = side.data if queues[node][0] == "data" else side.ack
        begin, end = max(time, start), min(time + length, stop)
        busy[node] += max(end - begin, Fraction(0))
        at(time + length, node, "sent")

    for node, side in enumerate(sides):
        at(side.start, node, "start")
    while events and events[0][0] < stop:
        time, _, node, what = heapq.heappop(events)
        if what == "start":
            for _ in range(sides[node].window):
                enqueue(time, node, "data")
        elif what == "sent":
            packet = queues[node].pop(0)
            at(time + sides[node].delay, 1 - node, packet)
            if packet == "data" and last[node] == "ack" and time >= start:
                clusters[node].append(time)
            last[node] = packet
            if queues[node]:
                transmit(time, node)
        else:  # data is acknowledged at once; an ACK releases one segment
            enqueue(time, node, "ack" if what == "data" else "data")
    return tuple(Outcome(busy[n], peak[n], data_peak[n], tuple(clusters[n])) for n in (0, 1))
