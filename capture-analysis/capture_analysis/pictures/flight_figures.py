"""A direction over time: its segments, data in flight, round trips, rates, and marks of ECN."""

import numpy as np

from capture_analysis.columns import FLAG_FIN, FLAG_RST, FLAG_SYN, BoolArray, IntArray, Mark
from capture_analysis.pictures.direction import Direction
from capture_analysis.pictures.figure import OVER_TIME, Figure, FloatArray, Line
from capture_analysis.pictures.overview import OVERVIEW_BINS, RATE_BINS, Overview
from capture_analysis.tracking import Kind

_SEGMENTS = (
    (Kind.NEW_DATA, "data", 0),
    (Kind.RETRANSMISSION, "sent again", 1),
    (Kind.LATE_DATA, "late data", 5),
    (Kind.PROBE, "probes", 7),
)
_LETTERS = (("S", "SYN", FLAG_SYN), ("F", "FIN", FLAG_FIN), ("X", "RST", FLAG_RST))


def time_sequence(direction: Direction) -> Figure:
    """Draw tcptrace's graph: a direction's data, with the ACKs and windows that answer it.

    Source: Shepard, TCP packet trace analysis, MIT 1991; drawn as by Ostermann's tcptrace.
    """
    caption = (
        f"{direction.name}. Each segment is a bar from its first byte to its last, R if "
        "it was sent again; S, F and X are SYN, FIN and RST. The lower steps are the "
        "bytes acknowledged, the upper steps the bytes that the receiver's window "
        "allows; a flight of ACKs on top of each other "
        "came back to back."
    )
    if direction.window_shift is None:
        caption += " The window is not drawn: the handshake with its scale was not seen."
    return Figure(
        "time-sequence",
        "Time-sequence graph",
        caption,
        OVER_TIME,
        "sequence number, bytes",
        [*_segment_lines(direction), *_returned(direction)],
    )


def _segment_lines(direction: Direction) -> list[Line]:
    seq, payload = direction.tracked.seq_bytes, direction.packets.payload_bytes
    lines = []
    for kind, name, colour in _SEGMENTS:
        rows = direction.data(kind)
        x, low, high = direction.seconds(rows), seq[rows], (seq + payload)[rows]
        lines.append(Line(name, x, _bytes(low), "spans", colour, top=_bytes(high)))
        if kind is Kind.RETRANSMISSION:
            lines.append(Line("R", x, _bytes(high), "letters", colour, letter="R"))
    for letter, name, flag in _LETTERS:
        rows = direction.by_sender() & (direction.packets.flags & flag != 0)
        x, y = direction.seconds(rows), _bytes(seq[rows])
        lines.append(Line(name, x, y, "letters", 6, letter=letter))
    return [line for line in lines if len(line.x)]


def _returned(direction: Direction) -> list[Line]:
    rows = np.flatnonzero(direction.select_acks())
    if not len(rows):
        return []
    acked = np.maximum.accumulate(direction.tracked.ack_bytes[rows])
    lines = [_steps(direction, "acknowledged", rows, acked, 2)]
    if direction.window_shift is not None:
        allowed = direction.tracked.ack_bytes[rows] + direction.window_bytes(rows)
        lines.append(_steps(direction, "window", rows, allowed, 4))
    again = direction.pure_acks(Kind.DUPLICATE_ACK)
    if again.any():
        level = _bytes(direction.tracked.ack_bytes[again])
        lines.append(Line("duplicate ACKs", direction.seconds(again), level, "points", 2))
    return lines + _sacked(direction, rows)


def _sacked(direction: Direction, rows: IntArray) -> list[Line]:
    packets = direction.packets
    rows = rows[packets.marks[rows] & Mark.SACK != 0]
    if not len(rows):
        return []
    left, right = (
        direction.tracked.ack_bytes[rows] + _signed(edge[rows] - packets.ack[rows])
        for edge in (packets.sack_left, packets.sack_right)
    )
    x = direction.seconds(rows)
    return [Line("SACK", x, _bytes(left), "spans", 3, top=_bytes(right))]


def _signed(difference: IntArray) -> IntArray:
    """Unwrap a difference of sequence numbers to the value nearest to 0."""
    return (difference + (1 << 31)) % (1 << 32) - (1 << 31)


def _steps(direction: Direction, name: str, rows: IntArray, level: IntArray, colour: int) -> Line:
    """Make a step line of the points at which a level changes, and the last point."""
    kept = np.diff(level, prepend=level[0] - 1) != 0
    kept[-1] = True
    return Line(name, direction.seconds(rows[kept]), _bytes(level[kept]), "steps", colour)


def _bytes(numbers: IntArray) -> FloatArray:
    return numbers.astype(np.float64)  # exact: sequence numbers stay far below 2^53


# A receiver's window that is always at least this many times the data in flight is not drawn: the
# data in flight would be too small to see.
_UNDRAWN_WINDOW_FLIGHTS = 2


def in_flight(direction: Direction) -> Figure:
    """Draw the payload that was sent and not acknowledged, after each packet."""
    rows = np.flatnonzero(direction.data() | direction.pure_acks(Kind.ACK))
    level = direction.tracked.in_flight_bytes[rows].astype(np.float64)
    lines = [Line("in flight", direction.seconds(rows), level, "steps", 0)]
    caption = (
        "Payload that the tap has seen, without its acknowledgement. It falls at once where "
        "compressed ACKs pass, and rises with the burst that they release."
    )
    window = _window(direction)
    if window is not None and window.y.min() > _UNDRAWN_WINDOW_FLIGHTS * level.max(initial=0):
        caption += f" The receiver's window, at least {window.y.min():,.0f} bytes, is far above."
    elif window is not None:
        lines.append(window)
    return Figure(
        "in-flight",
        "Data in flight",
        caption,
        OVER_TIME,
        "bytes",
        [line for line in lines if len(line.x)],
    )


def _window(direction: Direction) -> Line | None:
    """Make the line of the receiver's window, if its scale is known."""
    rows = np.flatnonzero(direction.select_acks())
    rows = rows[direction.packets.flags[rows] & FLAG_SYN == 0]
    if direction.window_shift is None or not len(rows):
        return None
    window = direction.window_bytes(rows).astype(np.float64)
    return Line("receiver's window", direction.seconds(rows), window, "steps", 4)


def round_trips(direction: Direction) -> Figure:
    """Draw the time from each segment to its ACK, both at the tap."""
    rows = np.flatnonzero(~direction.by_sender() & (direction.tracked.rtt_ns >= 0))
    rtt_ms = direction.tracked.rtt_ns[rows] / 1e6
    return Figure(
        "rtt",
        "Round-trip time",
        "From a segment passing the tap to its acknowledgement passing it: with queueing "
        "in both directions and the receiver's delay, but only for the part of the path "
        "beyond the tap. "
        "Segments sent again are left out (Karn).",
        OVER_TIME,
        "ms",
        [Line("RTT", direction.seconds(rows), rtt_ms, "points", 0)] if len(rows) else [],
    )


def rates(direction: Direction, overview: Overview) -> Figure:
    """Draw goodput and throughput in RATE_BINS intervals."""
    together = OVERVIEW_BINS // RATE_BINS
    start = (overview.first_ns - direction.origin_ns) / 1e9
    width = overview.bin_ns * together / 1e9
    x = np.round(start + width * np.arange(RATE_BINS + 1), 9)
    lines = []
    for colour, (name, total_bytes) in enumerate(
        (("goodput", overview.new_bytes), ("throughput", overview.frame_bytes))
    ):
        mbit = overview.rate_mbit(total_bytes)
        lines.append(Line(name, x, np.append(mbit, mbit[-1]), "steps", 2 - 2 * colour))
    return Figure(
        "rates",
        "Goodput and throughput",
        "New payload, and frames with retransmissions, that pass the tap, in intervals of "
        f"{1e3 * width:.4g} ms.",
        OVER_TIME,
        "Mbit/s",
        lines,
    )


_CE, _ECE = int(Mark.ECT_0 | Mark.ECT_1), 0x40
# The bits of AccECN's counter: ECE, CWR and AE, and those that a SYN offers and its answer has.
_COUNTER_SHIFT, _COUNTER, _OFFER, _ANSWERS = 6, 7, 7, (2, 3, 4, 6)
_FIRST_COUNT = 5  # RFC 9768, 3.2.2.1


def _count_marks(direction: Direction) -> tuple[IntArray, FloatArray] | None:
    """Return the ACKs with AccECN's counter, and the CE packets told so far; None without it."""
    packets = direction.packets
    counter = packets.flags >> _COUNTER_SHIFT & _COUNTER
    syns = counter[packets.flags & FLAG_SYN != 0].tolist()
    if _OFFER not in syns or not set(syns) & set(_ANSWERS):
        return None
    # The first ACK of the handshake has another code.
    rows = np.flatnonzero(direction.select_acks() & (direction.tracked.ack_bytes > 1))
    told = np.diff(counter[rows], prepend=_FIRST_COUNT) & _COUNTER
    return rows, np.cumsum(told).astype(float)


def _each(which: BoolArray) -> tuple[IntArray, FloatArray]:
    """Count the packets of a mask; return their rows and the count at each."""
    rows = np.flatnonzero(which)
    return rows, np.arange(1.0, len(rows) + 1)


def marks(direction: Direction) -> Figure:
    """Draw the number so far of segments with CE, and of ACKs with ECE."""
    packets = direction.packets
    marked = direction.data() & ((packets.marks & _CE) == _CE)
    echoed = direction.select_acks() & (packets.flags & _ECE != 0)
    each = [_each(marked), _each(echoed & (packets.flags & FLAG_SYN == 0))]
    told = "ACKs with ECE"
    if counted := _count_marks(direction):
        each[1], told = counted, "CE counted by AccECN's ACKs"
    lines = [
        Line(name, direction.seconds(rows), count, "steps", 2 * colour)
        for colour, (name, (rows, count)) in enumerate(
            zip(("segments with CE", told), each, strict=True)
        )
        if len(rows) and count[-1] and (marked.any() or counted)
    ]
    return Figure(
        "marks",
        "Marks of ECN",
        "Segments that a queue on the path marked (CE), and ACKs that tell of marks (ECE) or the "
        "packets that AccECN's counter in ACKs told, each counted from the start.",
        OVER_TIME,
        "packets",
        lines,
    )
