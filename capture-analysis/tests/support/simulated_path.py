"""Simulate TCP over a path of two queues, and capture it, with the truth about its ACKs.

Host 0 and host 1 are joined by a link in each direction, a FIFO with a rate, and a delay before and
behind it. Senders are windows of segments, receivers acknowledge. A tap
sees host 0's interface, host 1's, or the wire behind the link from 0 to 1.
"""

import heapq
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from capture_analysis.columns import COLUMN_TYPES, FLAG_ACK, FLAG_SYN, IntArray, Mark, Packets
from capture_analysis.flow_table import FLOW, FlowTable, Seen
from measured_captures import START_NS, ColumnCapture
from simulated_controls import Bbr, Cubic
from simulated_queues import Codel, FairQueues, Waiting

Place = Literal["near", "middle", "far"]
DELAYED_ACK_NS = 40_000_000
FIRST_WINDOW = 10
WINDOW_BYTES = 60_000
WINDOW_SHIFT = 8
PAUSE_NS = 1_000_000_000


@dataclass
class Link:
    """A FIFO and the wires before and behind it.

    Attributes:
        rate_bit: its rate.
        before_ns, behind_ns: delays to its queue and from it.
        buffer_bytes: a packet that finds more waiting is dropped.
        burst: packets that leave after one wait for the medium, as of Wi-Fi; 0 for a wire.
        wait_ns: that wait.
        jitter_ns: a random delay of 0 to this on top, without reordering.
        loss: share of packets that are dropped at random.
        polices: True to drop packets that would wait too long (policer).
        overtaken: share of packets that those behind them overtake.
        overtaken_ns: delay of these on top.
        codel: drops packets that leave the queue; None for none.
        fair: queues that serve connections in turns, in place of a FIFO; None for none. Of the
            other attributes only rate and delays count then.
        change_ns: time at which its rate becomes changed_bit, and its delay longer by changed_ns
            (handover).
        busy_ns: times in which it transmitted, or waited for its medium with packets in the queue.
    """

    rate_bit: float
    before_ns: int = 1_000_000
    behind_ns: int = 1_000_000
    buffer_bytes: int = 1 << 40
    burst: int = 0
    wait_ns: int = 2_000_000
    jitter_ns: int = 0
    loss: float = 0.0
    polices: bool = False
    overtaken: float = 0.0
    overtaken_ns: int = 2_000_000
    codel: Codel | None = None
    fair: FairQueues | None = None
    change_ns: int = 1 << 62
    changed_bit: float = 0.0
    changed_ns: int = 0
    # State of the queue.
    free_ns: int = 0
    room: int = 0
    last_ns: int = 0
    now_later_ns: int = 0
    busy_ns: list[tuple[int, int]] = field(default_factory=list)

    def left_ns(self, entered_ns: int, frame: int, random: np.random.Generator) -> int | None:
        """Return the time at which a packet has left the queue; None if it is dropped."""
        if entered_ns >= self.change_ns:
            self.rate_bit, self.change_ns = self.changed_bit, 1 << 62
            self.now_later_ns = self.changed_ns
        waiting_ns = self.free_ns - entered_ns
        if waiting_ns * self.rate_bit > 8e9 * self.buffer_bytes or random.random() < self.loss:
            return None
        if self.codel and self.codel.dropped(max(self.free_ns, entered_ns), waiting_ns):
            return None
        begins_ns = max(self.free_ns, entered_ns)
        if self.burst and (waiting_ns < 0 or not self.room):
            self.free_ns = max(self.free_ns, entered_ns) + round(self.wait_ns * random.random())
            self.room = self.burst
        self.room -= 1
        self.free_ns = max(self.free_ns, entered_ns) + round(8e9 * frame / self.rate_bit)
        self.busy_ns.append((begins_ns, self.free_ns))
        late_ns = int(random.integers(0, self.jitter_ns)) if self.jitter_ns else 0
        left_ns = self.free_ns + late_ns + self.now_later_ns
        if self.polices:  # the rate of the wire itself is ten times the policer's
            left_ns = max(self.last_ns, entered_ns) + round(0.8e9 * frame / self.rate_bit)
        self.last_ns = max(self.last_ns, left_ns)
        if self.overtaken and random.random() < self.overtaken:
            return self.last_ns + self.overtaken_ns
        return self.last_ns


@dataclass
class Connection:
    """A sender of data and its receiver.

    Attributes:
        sender: host that sends the data.
        window: the most segments in flight.
        segments: total number to send.
        payload: of a segment.
        begin_ns: time of its SYN.
        every: segments that an ACK acknowledges.
        write_ns, write: the application writes this number of segments at this interval; 0: all at
            once.
        held_ns: shortest time between two readings of the receiver.
        merged: True to answer all data of a reading with a single ACK, as above GRO.
        tick_ns: tick of the time stamps; 0 for none.
        hosts: number of the host pair.
        announced: segments of room that its receiver announces; 0 for WINDOW_BYTES, which its
            sender ignores.
        avoids: True to grow by a segment a round trip after a loss, as in congestion avoidance.
        cubic, bbr: its congestion control in place of avoids; None for none.
        hidden: True if no tap sees its packets: they only fill queues.
        sacks: True for ACKs with SACK blocks, by which the sender finds missing segments.
        reads_ns, reads: interval at which its application reads, and segments at a time; the
            rest takes room of the announced window; 0: it reads all at once.
    """

    sender: int = 0
    window: int = 20
    segments: int = 1000
    payload: int = 1448
    begin_ns: int = 0
    every: int = 1
    write_ns: int = 0
    write: int = 1
    held_ns: int = 0
    merged: bool = False
    tick_ns: int = 1_000_000
    hosts: int = 1
    announced: int = 0
    avoids: bool = False
    reads_ns: int = 0
    reads: int = 1
    sacks: bool = False
    cubic: Cubic | None = None
    bbr: Bbr | None = None
    hidden: bool = False
    # State: of the sender, then of the receiver.
    now_window: float = FIRST_WINDOW
    next: int = 0
    acked: int = 0
    repeats: int = 0
    recover: int = 0
    threshold: float = float("inf")
    sacked: set[int] = field(default_factory=set)
    resent: set[int] = field(default_factory=set)
    expected: int = 0
    unanswered: int = 0
    beyond: set[int] = field(default_factory=set)
    latest: int = 0
    late_acks: int = 0
    unread: int = 0
    most_unread: int = 0
    opened: int = 0
    edge: int = 0
    timer: int = 0
    taking: bool = False
    closed: bool = False
    # The sender's present wait, its start, and the time of each kind.
    cause: str = ""
    since_ns: int = 0
    data_ns: tuple[int, int] = (0, 0)  # of the first data and of the last
    waited_ns: Counter[str] = field(default_factory=Counter)

    def note(self, now_ns: int, written: int) -> None:
        """Add the time since the last note to its cause, and find the present cause of waiting."""
        paused = self.cause == "application" and now_ns - self.since_ns >= PAUSE_NS
        self.waited_ns["pause" if paused else self.cause] += now_ns - self.since_ns
        self.since_ns = now_ns
        if self.acked < self.recover:
            self.cause = "recovery"
        elif self.next >= self.segments:
            self.cause = ""
        elif self.next >= written:
            self.cause = "application"
        elif self.announced and self.next - self.acked >= self.announced:
            self.cause = "receive window"
        else:
            self.cause = "congestion window"

    def block(self) -> tuple[int, int]:
        """Return begin and end of the block with the latest segment; 0 if none is missing."""
        if self.latest not in self.beyond:
            return 0, 0
        first = end = self.latest
        while first - 1 in self.beyond:
            first -= 1
        while end in self.beyond:
            end += 1
        return first, end

    def missing(self) -> int | None:
        """Return the first segment below a SACK block that was not sent again so far."""
        known = self.sacked | self.resent
        between = range(self.acked, max(self.sacked, default=0))
        return next((which for which in between if which not in known), None)

    @property
    def room(self) -> int:
        """Return the number of segments that may be outstanding."""
        if self.reads_ns:
            return min(int(self.now_window), max(self.edge, self.announced) - self.acked)
        return min(int(self.now_window), self.announced or int(self.now_window))

    @property
    def header(self) -> int:
        """Return the number of bytes of Ethernet, IP and TCP headers."""
        return 66 if self.tick_ns else 54


@dataclass(frozen=True)
class Sent:
    """A packet's direction (0: from host 0) and its headers' fields."""

    way: int
    flags: int
    seq: int
    ack: int
    payload: int
    sack: tuple[int, int] = (0, 0)
    unread: int = 0


@dataclass
class Truth:
    """When each pure ACK of a connection was sent, and when the tap saw it; shape (n,), ns."""

    sent_ns: IntArray
    seen_ns: IntArray


class Simulation:
    """A path in operation.

    Args:
        links: from host 0 to host 1, and back.
        connections: what they carry.
        place: of the tap.
        seed: of the pseudo-random numbers.
    """

    def __init__(
        self, links: tuple[Link, Link], connections: list[Connection], place: Place, seed: int = 1
    ) -> None:
        self.links, self.connections, self.place = links, connections, place
        self.random = np.random.default_rng(seed)
        self.rows: list[tuple[int, ...]] = []
        self.acks: list[tuple[int, int, int]] = []  # connection, sent, seen
        self.dropped: set[tuple[int, int]] = set()  # connection, sequence number
        self._events: list[tuple[int, int, Callable[..., None], tuple[Any, ...]]] = []
        self._count = 0

    def run(self, packets: int = 20_000) -> "Simulation":
        """Run until this number of packets is captured, or until nothing is left to do."""
        for number, each in enumerate(self.connections):
            self._at(each.begin_ns, self._open, number, 0)
        while self._events and len(self.rows) < packets:
            now_ns, _, act, arguments = heapq.heappop(self._events)
            act(now_ns, *arguments)
        return self

    def _at(self, time_ns: int, act: Callable[..., None], *arguments: Any) -> None:
        self._count += 1
        heapq.heappush(self._events, (time_ns, self._count, act, arguments))

    def _send(
        self, now_ns: int, number: int, sent: Sent, act: Callable[..., None], *arguments: int
    ) -> None:
        """Send a packet and let the tap see it; call `act` when it arrives."""
        each = self.connections[number]
        way, frame = sent.way, sent.payload + each.header
        link = self.links[way]
        entered_ns = now_ns + link.before_ns

        def left(left_ns: int | None) -> None:
            arrives_ns = None if left_ns is None else left_ns + link.behind_ns
            seen_ns: int | None = now_ns
            if self.place == "middle":
                seen_ns = left_ns if way == 0 else now_ns + link.behind_ns
            elif (self.place == "near") != (way == 0):
                seen_ns = arrives_ns
            if seen_ns is not None and not each.hidden:
                self._seen(seen_ns, now_ns, number, sent)
            if arrives_ns is None:
                self.dropped.add((number, sent.seq))
            else:
                self._at(arrives_ns, act, number, *arguments)

        if link.fair is None:
            left(link.left_ns(entered_ns, frame, self.random))
        else:
            self._at(entered_ns, self._enter, link, number, Waiting(entered_ns, frame, left))

    def _seen(self, seen_ns: int, now_ns: int, number: int, sent: Sent) -> None:
        """Capture a packet that left its host at `now_ns`."""
        each = self.connections[number]
        half, frame = int(sent.way != each.sender), sent.payload + each.header
        stamp = now_ns // each.tick_ns if each.tick_ns else 0
        numbers = sent.flags, sent.seq, sent.ack, sent.payload
        self.rows.append((seen_ns, number, half, *numbers, frame, stamp, *sent.sack, sent.unread))
        if half and not sent.payload and not sent.flags & FLAG_SYN:
            self.acks.append((number, now_ns, seen_ns))

    def _enter(self, now_ns: int, link: Link, number: int, packet: Waiting) -> None:
        """Put a packet into fair queues."""
        assert link.fair is not None
        link.fair.add(number, packet)
        if not link.fair.sends:
            self._leave(now_ns, link)

    def _leave(self, now_ns: int, link: Link) -> None:
        """Transmit the next packet of fair queues."""
        assert link.fair is not None
        packet = link.fair.next(now_ns)
        link.fair.sends = packet is not None
        if packet is None:
            return
        end_ns = now_ns + round(8e9 * packet.frame / link.rate_bit)
        link.busy_ns.append((now_ns, end_ns))
        packet.left(end_ns)
        self._at(end_ns, self._leave, link)

    def _open(self, now_ns: int, number: int, step: int) -> None:
        """Send the handshake's packets, then the data."""
        each = self.connections[number]
        if step == 3:
            return
        flags = (FLAG_SYN, FLAG_SYN | FLAG_ACK, FLAG_ACK)[step]
        sent = Sent(each.sender ^ (step == 1), flags, int(step == 2), int(step > 0), 0)
        self._send(now_ns, number, sent, self._open, step + 1)
        if step == 2:
            self._pump(now_ns + 1000, number)
            each.begin_ns = now_ns
            if each.write_ns:
                self._at(now_ns + each.write_ns, self._pump, number)

    def _pump(self, now_ns: int, number: int, again: int = 1) -> None:
        """Send the segments that the window and the application allow."""
        each = self.connections[number]
        written = each.segments
        if each.write_ns:
            written = min(written, each.write * (1 + (now_ns - each.begin_ns) // each.write_ns))
            if again and written < each.segments:
                self._at(now_ns + each.write_ns, self._pump, number)
        while each.next < min(written, each.acked + each.room):
            if each.bbr and now_ns < each.bbr.next_ns:
                if not each.bbr.waits:
                    each.bbr.waits = True
                    self._at(each.bbr.next_ns, self._paced, number)
                break
            if each.bbr:
                each.bbr.sent(each.next, each.acked, now_ns)
            self._segment(now_ns, number, each.next)
            each.next += 1
        each.note(now_ns, written)
        if again == 0:
            self._at(now_ns + 1_000_000_000, self._late, number, each.acked)

    def _paced(self, now_ns: int, number: int) -> None:
        bbr = self.connections[number].bbr
        assert bbr is not None
        bbr.waits = False
        self._pump(now_ns, number)

    def _segment(self, now_ns: int, number: int, which: int) -> None:
        each = self.connections[number]
        each.data_ns = each.data_ns[0] or now_ns, now_ns
        sent = Sent(each.sender, FLAG_ACK, 1 + which * each.payload, 1, each.payload)
        self._send(now_ns, number, sent, self._arrive, which)

    def _late(self, now_ns: int, number: int, acked: int) -> None:
        """Send the first outstanding segment again unless an ACK has come since."""
        each = self.connections[number]
        if each.acked == acked < each.next:
            each.now_window, each.recover, each.cause = 1.0, each.next, "recovery"
            each.threshold, each.resent = max((each.next - each.acked) / 2, 2.0), set()
            self._segment(now_ns, number, acked)
            self._at(now_ns + 1_000_000_000, self._late, number, acked)

    def _arrive(self, now_ns: int, number: int, which: int) -> None:
        """Receive a segment, now or at the receiver's next reading."""
        each = self.connections[number]
        if which >= each.expected:
            each.beyond.add(which)
            each.latest = which
        if not each.held_ns:
            self._take(now_ns, number, which)
        elif not each.taking:
            each.taking = True
            self._at(now_ns - now_ns % each.held_ns + each.held_ns, self._look, number)

    def _look(self, now_ns: int, number: int) -> None:
        each = self.connections[number]
        each.taking = False
        waiting = sorted(each.beyond)
        if each.merged and waiting and waiting[0] == each.expected:
            while each.expected in each.beyond:
                each.beyond.discard(each.expected)
                each.expected += 1
            self._acknowledge(now_ns, number)
            return
        for place, which in enumerate(waiting):
            self._take(now_ns + 500 * place, number, which)

    def _take(self, now_ns: int, number: int, which: int) -> None:
        each = self.connections[number]
        in_order = which == each.expected
        filled = len(each.beyond) > 1 or not in_order
        while each.expected in each.beyond:
            each.beyond.discard(each.expected)
            each.expected += 1
            each.unanswered += 1
            self._keep(now_ns, number)
        if (filled and not each.held_ns) or each.unanswered >= each.every:
            self._acknowledge(now_ns, number)
        else:
            each.timer += 1
            self._at(now_ns + DELAYED_ACK_NS, self._delayed, number, each.timer)

    def _delayed(self, now_ns: int, number: int, timer: int) -> None:
        each = self.connections[number]
        if timer == each.timer and each.unanswered:
            each.late_acks += 1
            self._acknowledge(now_ns, number)

    def _keep(self, now_ns: int, number: int) -> None:
        """Keep a segment until the application reads it."""
        each = self.connections[number]
        if each.reads_ns:
            if not each.unread:
                self._at(now_ns + each.reads_ns, self._read, number)
            each.unread += 1
            each.most_unread = max(each.most_unread, each.unread)

    def _read(self, now_ns: int, number: int) -> None:
        """Let the application read; send an ACK if the window was shut."""
        each = self.connections[number]
        was_shut = each.unread == each.announced
        each.unread = max(each.unread - each.reads, 0)
        if was_shut:
            each.opened += 1
            self._acknowledge(now_ns, number)
        if each.unread:
            self._at(now_ns + each.reads_ns, self._read, number)

    def _acknowledge(self, now_ns: int, number: int) -> None:
        each = self.connections[number]
        each.unanswered, each.timer = 0, each.timer + 1
        block = each.block() if each.sacks else (0, 0)
        sack = 1 + block[0] * each.payload, 1 + block[1] * each.payload
        ack = 1 + each.expected * each.payload
        sack = sack if block[1] else (0, 0)
        sent = Sent(1 - each.sender, FLAG_ACK, 1, ack, 0, sack, each.unread)
        edge = each.expected + each.announced - each.unread
        self._send(now_ns, number, sent, self._acked, each.expected, *block, edge)

    def _acked(self, now_ns: int, number: int, expected: int, *told: int) -> None:
        """Move the sender's window; a third duplicate ACK sends a segment again."""
        each = self.connections[number]
        left, end, edge = told
        opens, each.edge = edge > each.edge, max(edge, each.edge)
        each.sacked = {n for n in each.sacked if n > expected} | set(range(left, end))
        if expected > each.acked:
            self._grow(each, expected, now_ns)
            each.acked, each.repeats = expected, 0
            if expected < each.recover:
                self._repair(now_ns, number)
            self._pump(now_ns, number, 0)
        elif each.reads_ns and opens:
            self._pump(now_ns, number, 0)
        elif expected < each.next:
            each.repeats += 1
            if each.repeats == 3 and expected >= each.recover:
                each.recover, each.cause = each.next, "recovery"
                if each.cubic:
                    each.now_window = each.threshold = each.cubic.lost(each.now_window, now_ns)
                elif not each.bbr:
                    each.now_window = each.threshold = max(each.now_window / 2, 2.0)
                each.resent = set()
                self._repair(now_ns, number)
            elif each.sacks and expected < each.recover:
                self._repair(now_ns, number)

    def _grow(self, each: Connection, expected: int, now_ns: int) -> None:
        """Let a sender's window grow by an ACK."""
        more, slow = expected - each.acked, each.now_window >= each.threshold
        if each.bbr:
            grown = each.bbr.acked(expected, each.next - expected, now_ns)
        elif each.cubic and slow:
            grown = each.cubic.grown(each.now_window, more, now_ns)
        elif each.now_window >= each.window:
            return
        else:
            by_round = each.avoids and slow
            grown = each.now_window + (more / each.now_window if by_round else more)
        each.now_window = min(each.window, grown)

    def _repair(self, now_ns: int, number: int) -> None:
        """Send again the segment that the receiver expects, or the next hole by SACK."""
        each = self.connections[number]
        which = each.missing() if each.sacks else each.acked
        if which is not None:
            each.resent.add(which)
            self._segment(now_ns, number, which)

    def captured(self, clock_ns: int = 1000, merge: int = 1) -> ColumnCapture:
        """Return the packets that the tap saw.

        Args:
            clock_ns: resolution of its clock.
            merge: the most segments in a row that are captured as one, as above TSO.
        """
        rows = sorted(self.rows, key=lambda row: row[0])  # ACKs before the data that they release
        rows = _merged(rows, merge) if merge > 1 else rows
        time, flow, half, flags, seq, ack, payload, frame, stamp, left, right, unread = np.array(
            rows, np.int64
        ).T
        used = np.unique(flow)
        columns = {name: np.zeros(len(time), kind) for name, kind in COLUMN_TYPES.items()}
        stamped = np.array([each.tick_ns > 0 for each in self.connections])[flow]
        for name, values in {
            "time_ns": START_NS + time // clock_ns * clock_ns,
            "flow": np.searchsorted(used, flow),
            "half": half,
            "flags": flags,
            "seq": seq,
            "ack": ack,
            "payload_bytes": payload,
            "frame_bytes": frame,
            "ts_value": stamp + 1000,
            "marks": stamped * int(Mark.TIMESTAMPS) | (right > 0) * int(Mark.SACK),
            "sack_left": left,
            "sack_right": right,
            "window": self._announced()[flow] - (unread * self._payload()[flow] >> WINDOW_SHIFT),
            "ip_id": np.arange(len(time)) % 65535 + 1,
        }.items():
            columns[name][:] = values
        columns["ts_value"][~stamped] = 0
        return ColumnCapture(Packets(**columns), self._table(used, time, flow))

    def _table(self, used: IntArray, time: IntArray, flow: IntArray) -> FlowTable:
        table = np.zeros(len(used), FLOW)
        for row, number in zip(table, used, strict=True):
            each = self.connections[number]
            ends = [bytes([*bytes(10), 255, 255, 10, 0, side, each.hosts]) for side in (1, 2)]
            for end, address in zip(
                ("source", "destination"), ends[:: -1 if each.sender else 1], strict=True
            ):
                row[end] = np.frombuffer(address, "u1")
            row["source_port"], row["destination_port"] = 40000 + number, 5001
            row["seen"], row["version"] = 3 * (Seen.HALF | Seen.SYN), 4
            row["mss"], row["first_ns"] = 1460, START_NS + time[flow == number][0]
            row["window_scale"] = WINDOW_SHIFT if each.announced else 0
        return FlowTable(table)

    def _announced(self) -> IntArray:
        """Return the windows in the headers of each connection."""
        return np.array(
            [
                -(-each.announced * each.payload >> WINDOW_SHIFT) or WINDOW_BYTES
                for each in self.connections
            ]
        )

    def _payload(self) -> IntArray:
        return np.array([each.payload for each in self.connections])

    def truth(self, number: int) -> Truth:
        """Return the truth about a connection's pure ACKs, in the order in which they were seen."""
        acks = np.array([a[1:] for a in self.acks if a[0] == number], np.int64).reshape(-1, 2)
        acks = acks[np.argsort(acks[:, 1], kind="stable")]
        return Truth(acks[:, 0], acks[:, 1])


def _merged(rows: list[tuple[int, ...]], most: int) -> list[tuple[int, ...]]:
    """Merge segments of a connection that follow each other within 100 us."""
    kept: list[list[int]] = []
    for row in rows:
        last = kept[-1] if kept else None
        if (
            last is not None
            and row[6]
            and last[6]
            and row[1:3] == tuple(last[1:3])
            and row[4] == last[4] + last[6]
            and row[0] - last[0] < 100_000
            and last[6] < most * row[6]
        ):
            last[6] += row[6]
            last[7] += row[6]
        else:
            kept.append(list(row))
    return [tuple(row) for row in kept]
