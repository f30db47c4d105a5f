"""Fixed windows over a half-duplex link with a packet always waiting at each end.

With a gap g, turns of n packets, and t_d and t_a for the bits of a data packet and an ACK, n data
packets and n ACKs take

    n (t_d + t_a) + 2 g

if both ends' turns are full: an end that has sent more than the other has fewer packets waiting.
With turns of one packet each packet pays a gap, so a data packet with its share of an ACK (a = 1,
or 1/2 with delayed ACKs) takes t_d + g + a (t_a + g).

With data in both directions that holds only while packets wait. Data of both ends alternates in
turns of one, and ACKs wait behind it: when the 2 W data packets have gone, only 2 a W ACKs wait.
The first of them arrives D + t_a + g later at the other end, and releases data there. If the last
ACK has gone before that, the medium is idle: ACKs are compressed, which shows as lost time. Ends
that start together need for a window

    T = 2 W (t_d + g) + max(2 a W (t_a + g), D + t_a + g).

An end that is ahead by k packets sends these while the other waits, which fills k (t_d + g) of the
gap. The lead follows from the starts and from each ACK since, so everything but a common start is
left to a packet-level model of two opposite connections (`shares`): fixed windows, a queue in
order of arrival at each end, and turns of one packet. The next sender is decided when the medium is
free; a packet that arrives at that time counts. The model shares no code with the medium's replay,
`twoway.links.half_duplex`. All its times are whole ns.

In a full turn ACKs that came t_d apart leave t_a apart, n together.
"""

import heapq
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, repeat

from twoway.links.half_duplex import Medium
from twoway.theory.network import Setup

NAME = "half_duplex"
# If windows are this multiple of the packets that medium and delays hold, a packet always waits at
# each end.
_AMPLE = 2
_BOTH = 2
_NS = 10**9
# Number of segments that each of Linux's first delayed ACKs acknowledges, and number of such ACKs:
# first 36 ACKs of 1 segment each, and so on. All later ACKs acknowledge 2. The receiver
# acknowledges every segment as long as its window grows (tcp_grow_window). The numbers were read
# off the captures of a run; they are the same for all starts.
_FIRST_DELAYED_ACKS = ((1, 36), (2, 72), (1, 4), (2, 88), (1, 1), (2, 89), (1, 1))
# Number of windows that the model sends before the measured ones, and number of measured windows.
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


def predict(setup: Setup) -> dict[str, float]:
    """Predict throughput and the shares of the medium.

    For a single connection also its largest bunch, and in turns of several packets the compression
    of its ACKs.

    Raises: ValueError with a sentence if the link has a medium for each direction, if windows
        differ, change, are too small or overflow a queue, or if delayed ACKs have turns of several
        packets.
    """
    medium, window = _covered(setup)
    if len({each.direction for each in setup.connections}) == _BOTH:
        return _both_directions(setup, medium, window)
    turn = medium.turn_packets
    acks = 1 if setup.acks_every_segment else 0.5
    gap_s = medium.gap_ns / 1e9 / turn
    held_s = dict.fromkeys(setup.links, 0.0)
    for each in setup.connections:
        held_s[each.direction] += setup.links[each.direction].data_s + gap_s
        held_s[each.ack_direction] += acks * (setup.links[each.ack_direction].ack_s + gap_s)
    # A data packet of each connection, with its ACKs.
    round_s = sum(held_s.values())
    _check_busy(setup, turn, window * acks, round_s)
    found = {f"medium_busy.{name}": held / round_s for name, held in held_s.items()}
    for each in setup.connections:
        link, back = setup.links[each.direction], setup.links[each.ack_direction]
        found[f"throughput.{each.name}"] = link.data_s * link.rate_bit / round_s / 1e6
        if len(setup.connections) == 1:
            found[f"ack_bunch_max.{each.name}"] = turn
            if turn > 2:
                found[f"compression_factor.{each.name}"] = link.data_s / back.ack_s
    return found


def _both_directions(setup: Setup, medium: Medium, window: int) -> dict[str, float]:
    """Predict throughput and the shares of the medium with a connection in each direction."""
    if medium.turn_packets > 1 or len(setup.connections) > _BOTH:
        raise ValueError("with data in both directions it has two connections, and turns of one")
    ends = [
        End(
            window=window,
            data_ns=round(link.data_s * _NS) + medium.gap_ns,
            ack_ns=round(link.ack_s * _NS) + medium.gap_ns,
            delay_ns=link.delay_ns,
            start_ns=round(each.start_s * _NS),
        )
        for each in setup.connections
        for link in [setup.links[each.direction]]
    ]
    acks = [_acknowledged(every_segment=setup.acks_every_segment) for _ in ends]
    found = {}
    for each, share in zip(setup.connections, shares((ends[0], ends[1]), acks), strict=True):
        link = setup.links[each.direction]
        found[f"throughput.{each.name}"] = link.data_s * link.rate_bit * 1e3 / share.segment_ns
        found[f"medium_busy.{each.direction}"] = share.busy
    return found


def _acknowledged(*, every_segment: bool) -> Iterator[int]:
    """List how many segments each ACK acknowledges."""
    if every_segment:
        return repeat(1)
    first = chain.from_iterable(repeat(count, times) for count, times in _FIRST_DELAYED_ACKS)
    return chain(first, repeat(2))


def _covered(setup: Setup) -> tuple[Medium, int]:
    """Return the medium and the window of each connection.

    Raises: ValueError with a sentence if the theory does not cover links or connections.
    """
    medium = setup.medium
    if medium is None:
        raise ValueError("is about a medium that both directions share")
    if setup.datagrams or len({each.window_packets for each in setup.connections}) != 1:
        raise ValueError("is about connections with equal windows, without UDP flows")
    if any(len(each.directions) + len(each.ack_directions) != 2 for each in setup.connections):
        raise ValueError("is about one link")
    if any(link.elements.act_behind for link in setup.links.values()):
        raise ValueError("is about constant delays without losses")
    window = setup.connections[0].window_packets
    if window is None or any(each.paced for each in setup.connections):
        raise ValueError("is about fixed windows that are always full")
    if medium.turn_packets > 1 and not setup.acks_every_segment:
        raise ValueError("with turns of several packets it needs an ACK for each segment")
    windows = window * len(setup.connections)
    if windows > min(link.buffer_packets for link in setup.links.values()):
        raise ValueError(f"windows of {windows} packets overflow a queue")
    return medium, window


def _check_busy(setup: Setup, turn: int, acks: float, round_s: float) -> None:
    """Check that windows are large enough to keep the medium busy.

    Args:
        setup: the experiment's parameters.
        turn: the most packets in a turn.
        acks: number of ACKs of a window.
        round_s: time for a data packet of each connection, with its ACKs.
    """
    count = len(setup.connections)
    delays_s = [link.delay_ns / 1e9 for link in setup.links.values()]
    # The window must hold a turn of each end, and the packets that are under way meanwhile.
    least = _AMPLE * (2 * turn + sum(delays_s) / round_s * count)
    if acks * count < least:
        raise ValueError(
            f"windows with {acks * count:g} ACKs may leave the medium idle; {least:.0f} do not"
        )
