"""The tracker in Python, packet by packet: slow and plain; clib/track.c must equal it.

Sequence numbers are Python integers here, unwrapped against the highest of a half, so that 2^31
bytes in a row may be missing before one is mistaken.
"""

from collections import deque
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from capture_analysis.columns import FLAG_ACK, FLAG_FIN, FLAG_RST, FLAG_SYN, Mark, Packets
from capture_analysis.flow_table import FlowTable
from capture_analysis.tracking import (
    HOLES,
    SEGMENTS,
    SEGMENTS_AT_FIRST,
    TRACKED_TYPES,
    Forgotten,
    Kind,
    Repair,
    Tracked,
)

RECENT, RECENT_MORE, RECENT_MOST = 4, 64, 1024
COPY_NS = 200_000_000
COPY_WITHOUT_ID_NS = 1_000_000
TIMEOUT_NS = 200_000_000
SET_BACK_NS = 10_000_000
_U32 = (1 << 32) - 1


class _Packet(NamedTuple):
    """The columns that the tracker reads, of one packet."""

    time_ns: int
    payload_bytes: int
    flow: int
    seq: int
    ack: int
    ts_value: int
    ts_echo: int
    sack_left: int
    sack_right: int
    window: int
    ip_id: int
    flags: int
    half: int
    marks: int

    def likeness(self) -> tuple[int, ...]:
        """Return the fields that a packet and its copy share."""
        return (
            *(self.seq, self.ack, self.payload_bytes, self.flags, self.window, self.ip_id),
            *(self.ts_value, self.ts_echo, self.sack_left, self.sack_right),
        )


class _Row(NamedTuple):
    """A row of `Tracked`, in its order."""

    seq_bytes: int
    ack_bytes: int
    gap_ns: int
    rtt_ns: int
    new_bytes: int
    acked_bytes: int
    in_flight_bytes: int
    unseen_bytes: int
    kind: Kind
    repair: Repair


@dataclass(slots=True)
class _Half:
    """The data that one end sent, and the part that the other acknowledged."""

    forgotten: Forgotten
    base: int = 0  # 32 bits; until the half is seen, what was first acknowledged of it
    seen: bool = False
    low: int = 0  # lowest sequence number seen, from the base
    high: int = 0  # one past the highest
    first: int | None = None  # behind the SYN, if it was seen
    rival: int | None = None  # the same for another SYN
    fin_at: int | None = None
    acked: int | None = None
    window: int = 0  # with the highest acknowledgement that this half sent
    holes: list[tuple[int, int]] = field(default_factory=list)  # ascending, between low and high
    unclear: tuple[int, int] | None = None  # spans without an RTT, not acknowledged
    segments: deque[tuple[int, int]] = field(default_factory=deque)  # end, time; not acknowledged
    recent: deque[tuple[int, tuple[int, ...]]] = field(default_factory=deque)  # newest first
    room: int = RECENT  # for these packets
    heard_ns: int | None = None  # last data or pure ACK of its direction
    told: bool = False  # True if the last ACKs report a gap
    repair: tuple[int, Repair] | None = None  # the ACK that ends it, and its cause
    last_ns: dict[bool, int] = field(default_factory=dict)  # by whether it had payload

    def begin(self, seq: int) -> None:
        """Set the half's first number; also count from it bytes acknowledged earlier."""
        if not self.seen:
            if self.acked is not None:
                self.acked = _signed(self.base + self.acked - seq)
            self.base, self.seen = seq, True

    def unwrap(self, number: int) -> int:
        """Return a sequence number of this half from its base, nearest to the highest known."""
        front = self.high if self.acked is None else max(self.high, self.acked)
        return front + _signed(number - self.base - front)

    def is_copy(self, packet: _Packet) -> bool:
        """Tell whether the packet was captured before; remember it if not."""
        likeness = packet.likeness()
        limit = COPY_NS if packet.ip_id else COPY_WITHOUT_ID_NS
        for back, (time_ns, like) in enumerate(self.recent, start=1):
            if like == likeness and abs(packet.time_ns - time_ns) < limit:
                if self.room == RECENT:
                    self.room = RECENT_MORE
                elif 2 * back > self.room and self.room < RECENT_MOST:
                    self.room *= 2
                return True
        self.recent = deque([(packet.time_ns, likeness), *self.recent][: self.room])
        return False

    def is_stray(self, packet: _Packet, start: int) -> bool:
        """Tell whether a SYN has another number than the connection; remember that number."""
        if not packet.flags & FLAG_SYN or self.first in (None, start + 1):
            return False
        self.rival = start + 1
        return True

    def why_again(self, packet: _Packet, start: int) -> Repair:
        """Return the kind of a retransmission, which begins or continues a repair."""
        if self.acked is not None and start + packet.payload_bytes <= self.acked:
            return Repair.SPURIOUS
        if self.heard_ns is not None and packet.time_ns - self.heard_ns >= TIMEOUT_NS:
            self.repair = self.high, Repair.TIMEOUT
        elif self.repair is None or (self.acked is not None and self.acked >= self.repair[0]):
            self.repair = self.high, Repair.FAST if self.told else Repair.OTHER
        return self.repair[1]

    def choose(self, answer: _Packet) -> None:
        """Begin again at the other SYN if that is the first to be acknowledged."""
        if self.rival is None or self.acked is not None:
            return
        if (self.base + self.rival - answer.ack) & _U32:
            return
        self.base, self.rival = (answer.ack - 1) & _U32, None
        self.low, self.high, self.first, self.fin_at = 0, 1, 1, None
        self.holes, self.unclear = [], None
        self.heard_ns, self.told, self.repair = None, False, None
        self.segments.clear()

    def gap(self, packet: _Packet) -> int:
        """See `Tracked.gap_ns`."""
        if packet.flags & (FLAG_SYN | FLAG_FIN | FLAG_RST):
            return -1
        before = self.last_ns.get(packet.payload_bytes > 0)
        self.last_ns[packet.payload_bytes > 0] = packet.time_ns
        return -1 if before is None else _elapsed(before, packet.time_ns)

    def is_later(self, time_ns: int) -> bool:
        """Tell whether a clock was set back since packets of this half."""
        return any(last - time_ns >= SET_BACK_NS for last in self.last_ns.values())

    def forget_times(self) -> None:
        """Take no RTT of all that was sent."""
        self._mark_unclear(self.low, self.high)

    def is_probe(self, packet: _Packet, start: int, other_window: int) -> bool:
        """See `Kind.PROBE`."""
        if packet.payload_bytes > 1 or packet.flags & FLAG_FIN or self.acked is None:
            return False
        if start == self.high - 1 and self.acked == self.high:
            return True
        return packet.payload_bytes == 1 and other_window == 0 and start >= self.acked

    def send(self, packet: _Packet, start: int) -> int:
        """Take the packet's payload, SYN and FIN as sent; return the number of new bytes."""
        data = start + bool(packet.flags & FLAG_SYN)
        data_end = data + packet.payload_bytes
        end = data_end + bool(packet.flags & FLAG_FIN)
        if end == start:
            return 0
        if packet.flags & FLAG_SYN:
            self._open(start)
        high = self.high
        new = self._fill(data, min(data_end, high)) + max(data_end - max(data, high), 0)
        self._mark_unclear(start, min(end, high))
        if start > high:
            self._add_hole(len(self.holes), (high, start))
        if end > high:
            self.high = end
            self._await_ack(high, end, packet.time_ns)
        if packet.flags & FLAG_FIN:
            self.fin_at = data_end
        return new

    def _open(self, start: int) -> None:
        """Begin at the SYN, unless payload overtook it; drop packets of an earlier connection."""
        self.first = start + 1
        if self.low == self.high:
            self.low = self.high = start

    def _fill(self, first: int, end: int) -> int:
        """Take [start, end), below the highest, as seen; return the number of new bytes."""
        if first >= end:
            return 0
        filled = 0
        if first < self.low:
            filled = min(end, self.low) - first
            if end < self.low:
                self._add_hole(0, (end, self.low))
            self.low = first
        left = []
        for hole in self.holes:
            inside = min(end, hole[1]) - max(first, hole[0])
            if inside <= 0:
                left.append(hole)
                continue
            filled += inside
            left += [rest for rest in ((hole[0], first), (end, hole[1])) if rest[0] < rest[1]]
        self.holes = left
        self._bound_holes()
        return filled

    def _add_hole(self, at: int, hole: tuple[int, int]) -> None:
        self.holes.insert(at, hole)
        self._bound_holes()

    def _bound_holes(self) -> None:
        if len(self.holes) > HOLES:
            del self.holes[0]
            self.forgotten.holes += 1

    def _mark_unclear(self, start: int, end: int) -> None:
        """Take no RTT of [start, end), as far as it is not acknowledged."""
        if self.acked is not None:
            start = max(start, self.acked)
        if start < end:
            low, high = self.unclear or (start, end)
            self.unclear = min(low, start), max(high, end)

    def _await_ack(self, start: int, end: int, time_ns: int) -> None:
        limit = SEGMENTS_AT_FIRST if self.acked is None else SEGMENTS
        if len(self.segments) < limit:
            self.segments.append((end, time_ns))
            return
        self._mark_unclear(start, end)
        if self.acked is not None:
            self.forgotten.segments += 1

    def acknowledge(self, ack: int, time_ns: int) -> tuple[int, int]:
        """Take everything below `ack`, above earlier ones, as acknowledged; return bytes, RTT."""
        before = self.acked
        if before is None:
            before = self._origin() if self.seen else ack
        newest = None
        while self.segments and self.segments[0][0] <= ack:
            newest = self.segments.popleft()[1]
        ambiguous = self.unclear is not None and self.unclear[0] < ack
        rtt_ns = -1 if newest is None or ambiguous else _elapsed(newest, time_ns)
        if self.unclear is not None and self.unclear[1] <= ack:
            self.unclear = None
        self.acked = ack
        return max(self._payload_edge(ack) - self._payload_edge(before), 0), rtt_ns

    def _origin(self) -> int:
        """Return where payload begins, as far as known."""
        return 0 if self.first is None else self.first

    def _payload_edge(self, number: int) -> int:
        """Return the number without the SYN before and the FIN after the payload."""
        if self.first is not None:
            number = max(number, self.first)
        return number if self.fin_at is None else min(number, self.fin_at)

    def unseen(self, ack: int) -> int:
        """Return the unseen payload that an ACK is the first to acknowledge."""
        acked = self._payload_edge(self._origin() if self.acked is None else self.acked)
        end = self._payload_edge(ack)
        inside = (min(last, end) - max(first, acked) for first, last in self.holes)
        return max(end - max(acked, self.high), 0) + sum(max(each, 0) for each in inside)

    def acked_unseen(self) -> bool:
        """Tell whether more was acknowledged than seen."""
        return self.acked is not None and self.acked > self.high

    def in_flight(self) -> int:
        """See `Tracked.in_flight_bytes`."""
        acked = self._origin() if self.acked is None else self.acked
        return max(self._payload_edge(self.high) - self._payload_edge(acked), 0)


class PythonTracker:
    """See `Tracker`."""

    def __init__(self) -> None:
        self._forgotten = Forgotten()
        self._halves: dict[tuple[int, int], _Half] = {}

    @property
    def forgotten(self) -> Forgotten:
        """Return the counts of discarded records."""
        return self._forgotten

    def track(self, packets: Packets, flows: FlowTable) -> Tracked:
        """See `Tracker.track`."""
        if len(packets) and packets.flow.max() >= len(flows):
            raise ValueError("a packet of a connection that is not in the table")
        columns = [getattr(packets, name).tolist() for name in _Packet._fields]
        rows = [self._row(_Packet(*values)) for values in zip(*columns, strict=True)]
        table = list(zip(*rows, strict=True)) or [()] * len(_Row._fields)
        return Tracked(
            *(np.array(c, dtype=d) for c, d in zip(table, TRACKED_TYPES.values(), strict=True))
        )

    def _half(self, flow: int, half: int) -> _Half:
        return self._halves.setdefault((flow, half), _Half(self._forgotten))

    def _row(self, packet: _Packet) -> _Row:
        mine = self._half(packet.flow, packet.half)
        other = self._half(packet.flow, 1 - packet.half)
        mine.begin(packet.seq)
        start = mine.unwrap(packet.seq)
        if packet.flags & FLAG_ACK:
            other.choose(packet)
        ack = other.unwrap(packet.ack) if packet.flags & FLAG_ACK and other.seen else -1
        gap_ns, new, acked, rtt_ns, unseen = -1, 0, 0, -1, 0
        repair = Repair.NONE
        if mine.is_copy(packet):
            kind = Kind.COPY
        elif packet.flags & FLAG_RST or mine.is_stray(packet, start):
            kind = Kind.CONTROL
        else:
            if mine.is_later(packet.time_ns) or other.is_later(packet.time_ns):
                mine.forget_times()
                other.forget_times()
            gap_ns = mine.gap(packet)
            kind = _kind(packet, mine, other, start)
            new = mine.send(packet, start)
            if kind is Kind.RETRANSMISSION and new:
                kind = Kind.LATE_DATA
            if kind is Kind.RETRANSMISSION:
                repair = mine.why_again(packet, start)
            if packet.flags & FLAG_ACK:
                acked, rtt_ns, unseen = _take_ack(packet, mine, other)
            if kind is not Kind.CONTROL:
                _hear(packet, kind, acked, mine, other)
        in_flight = (mine if packet.payload_bytes else other).in_flight()
        return _Row(
            *(start, max(ack, -1), gap_ns, rtt_ns),
            *(new, min(acked, _U32), min(in_flight, _U32), min(unseen, _U32)),
            kind,
            repair,
        )


def _hear(packet: _Packet, kind: Kind, acked: int, mine: _Half, other: _Half) -> None:
    """Take a packet's news of losses of its own half's data, or of those it acknowledges."""
    (mine if packet.payload_bytes else other).heard_ns = packet.time_ns
    sack = packet.marks & Mark.SACK and _signed(packet.sack_right - packet.ack) > 0
    told = bool(sack) or kind is Kind.DUPLICATE_ACK
    if told or acked:
        other.told = told


def _take_ack(packet: _Packet, mine: _Half, other: _Half) -> tuple[int, int, int]:
    """Account for the acknowledgement; return newly acknowledged payload, RTT, unseen payload."""
    if not other.seen and other.acked is None:
        other.base = packet.ack
    if packet.flags & FLAG_SYN and other.seen and other.acked_unseen():
        other.acked = None
    ack = other.unwrap(packet.ack)
    if other.acked is None or ack >= other.acked:
        mine.window = packet.window
    if other.acked is not None and ack <= other.acked:
        return 0, -1, 0
    known = other.seen and (other.first is None or mine.first is not None)
    unseen = other.unseen(ack) if known else 0
    return *other.acknowledge(ack, packet.time_ns), unseen


def _kind(packet: _Packet, mine: _Half, other: _Half, start: int) -> Kind:
    """Return the kind of a packet that is no copy and no RST; late data as a retransmission."""
    if packet.flags & FLAG_SYN:
        return Kind.CONTROL
    if packet.payload_bytes:
        if mine.is_probe(packet, start, other.window):
            return Kind.PROBE
        above = start + packet.payload_bytes > mine.high
        return Kind.NEW_DATA if above else Kind.RETRANSMISSION
    if packet.flags & FLAG_FIN:
        return Kind.CONTROL
    if not packet.flags & FLAG_ACK:
        return Kind.OLD_ACK
    return _kind_of_ack(packet, mine, other, start)


def _kind_of_ack(packet: _Packet, mine: _Half, other: _Half, start: int) -> Kind:
    ack = other.unwrap(packet.ack)
    if other.acked is None or ack > other.acked:
        return Kind.ACK
    if mine.is_probe(packet, start, other.window):
        return Kind.PROBE
    if ack < other.acked:
        return Kind.OLD_ACK
    outstanding = not other.seen or other.high > other.acked
    if packet.marks & Mark.SACK:
        return Kind.DUPLICATE_ACK if outstanding else Kind.OLD_ACK
    if packet.window != mine.window:
        return Kind.WINDOW_UPDATE
    return Kind.DUPLICATE_ACK if outstanding and packet.window else Kind.OLD_ACK


def _elapsed(from_ns: int, to_ns: int) -> int:
    """Return the time from one packet to the next in 64 bits; -1 if it ran backward."""
    return min(max(to_ns - from_ns, -1), (1 << 63) - 1)


def _signed(number: int) -> int:
    """Return the number of 32 bits as a signed difference, -2^31..2^31-1."""
    return ((number + (1 << 31)) & _U32) - (1 << 31)
