"""Marks of ECN over time: segments that the path marked, and ACKs that tell of marks."""

import numpy as np

from capture_analysis.columns import FLAG_SYN, BoolArray, IntArray, Mark
from capture_analysis.pictures.direction import Direction
from capture_analysis.pictures.figure import OVER_TIME, Figure, FloatArray, Line

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
