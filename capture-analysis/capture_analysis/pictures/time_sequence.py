"""Draw tcptrace's time-sequence graph, packet by packet.

Source: Shepard, TCP packet trace analysis, MIT 1991; drawn as by Ostermann's tcptrace.
"""

import numpy as np

from capture_analysis.columns import FLAG_FIN, FLAG_RST, FLAG_SYN, IntArray, Mark
from capture_analysis.pictures.direction import Direction
from capture_analysis.pictures.figure import OVER_TIME, Figure, FloatArray, Line
from capture_analysis.tracking import Kind

_SEGMENTS = (
    (Kind.NEW_DATA, "data", 0),
    (Kind.RETRANSMISSION, "sent again", 1),
    (Kind.LATE_DATA, "late data", 5),
    (Kind.PROBE, "probes", 7),
)
_LETTERS = (("S", "SYN", FLAG_SYN), ("F", "FIN", FLAG_FIN), ("X", "RST", FLAG_RST))


def time_sequence(direction: Direction) -> Figure:
    """Draw one direction's data, with the ACKs and windows that answer it."""
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
        rows = (direction.packets.half == direction.half) & (direction.packets.flags & flag != 0)
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
