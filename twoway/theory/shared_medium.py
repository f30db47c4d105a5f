"""A packet-level model of two opposite connections over a half-duplex medium.

The model has fixed windows, a first-in-first-out queue at each end, and turns of one packet. The
next sender is decided when the medium is free; a packet that arrives at that time counts. The model
shares no code with the medium's replay, `twoway.links.half_duplex`. All times are whole ns.
"""

import heapq
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

# Number of windows sent before the measured ones, and number of measured windows.
_SETTLED, _WATCHED = 40, 200


@dataclass(frozen=True)
class End:
    """An end of the link: its data, and its ACKs for the data of the other end.

    Attributes:
        window: segments in flight.
        data_ns, ack_ns: time of a segment and of an ACK on the medium, with their gaps.
        delay_ns: delay to the other end.
        start_ns: time at which the first window is sent.
    """

    window: int
    data_ns: int
    ack_ns: int
    delay_ns: int
    start_ns: int


@dataclass(frozen=True)
class Share:
    """An end's use of the medium.

    Attributes:
        segment_ns: mean time per segment.
        busy: share of the time for which its packets hold the medium, gaps included.
    """

    segment_ns: float
    busy: float


@dataclass
class _Receiver:
    """Segments that arrived, counted until an ACK is due."""

    counts: Iterator[int]
    wanted: int = 0
    waiting: int = 0

    def __post_init__(self) -> None:
        self.wanted = next(self.counts)

    def receive(self) -> int:
        """Take a segment; return the number of segments acknowledged now."""
        self.waiting += 1
        if self.waiting < self.wanted:
            return 0
        acknowledged, self.waiting = self.waiting, 0
        self.wanted = next(self.counts)
        return acknowledged


@dataclass
class _Sent:
    """Departure times of an end's segments, and its holds of the medium."""

    segments_ns: list[int] = field(default_factory=list)
    holds_ns: list[tuple[int, int]] = field(default_factory=list)


def shares(ends: tuple[End, End], counts: Sequence[Iterator[int]]) -> tuple[Share, Share]:
    """Compute each end's use of the medium.

    Args:
        ends: both ends.
        counts: for each end, the number of segments that each of its ACKs acknowledges, an endless
            series.
    """
    sent = _simulate(ends, [_Receiver(each) for each in counts])
    return _share(ends[0], sent[0]), _share(ends[1], sent[1])


def _simulate(ends: tuple[End, End], receivers: Sequence[_Receiver]) -> tuple[_Sent, _Sent]:
    # Packets are numbers: 0 is a segment, n an ACK of n segments.
    arrivals = [(each.start_ns, number, [0] * each.window) for number, each in enumerate(ends)]
    heapq.heapify(arrivals)
    queues: tuple[deque[int], deque[int]] = (deque(), deque())
    sent, last, now = (_Sent(), _Sent()), 1, 0
    while any(
        len(one.segments_ns) <= (_SETTLED + _WATCHED) * end.window
        for one, end in zip(sent, ends, strict=True)
    ):
        if not any(queues):
            now = max(now, arrivals[0][0])
        while arrivals and arrivals[0][0] <= now:
            _, end, packets = heapq.heappop(arrivals)
            queues[end].extend(packets)
        last = 1 - last if queues[1 - last] else last
        other, packet = 1 - last, queues[last].popleft()
        begun, now = now, now + (ends[last].ack_ns if packet else ends[last].data_ns)
        sent[last].holds_ns.append((begun, now))
        if packet:
            arriving = [0] * packet
        else:
            sent[last].segments_ns.append(now)
            arriving = [count] if (count := receivers[other].receive()) else []
        if arriving:
            heapq.heappush(arrivals, (now + ends[last].delay_ns, other, arriving))
    return sent


def _share(end: End, sent: _Sent) -> Share:
    first, watched = _SETTLED * end.window, _WATCHED * end.window
    begin, stop = sent.segments_ns[first], sent.segments_ns[first + watched]
    held = sum(max(0, min(b, stop) - max(a, begin)) for a, b in sent.holds_ns)
    return Share((stop - begin) / watched, held / (stop - begin))
