"""Marks of ECN over time: segments that the path marked, and ACKs that tell of marks."""

import numpy as np

from capture_analysis.columns import Mark
from capture_analysis.pictures.direction import Direction
from capture_analysis.pictures.figure import OVER_TIME, Figure, Line

_CE, _ECE = int(Mark.ECT_0 | Mark.ECT_1), 0x40


def marks(direction: Direction) -> Figure:
    """Draw the number so far of segments with CE, and of ACKs with ECE."""
    packets = direction.packets
    marked = direction.data() & ((packets.marks & _CE) == _CE)
    told = direction.acknowledging() & ((packets.flags & _ECE) != 0) & (packets.flags & 2 == 0)
    lines = []
    for colour, (name, which) in enumerate((("segments with CE", marked), ("ACKs with ECE", told))):
        rows = np.flatnonzero(which)
        if len(rows) and marked.any():
            count = np.arange(1.0, len(rows) + 1)
            lines.append(Line(name, direction.seconds(rows), count, "steps", 2 * colour))
    return Figure(
        "marks",
        "Marks of ECN",
        "Segments that a queue on the path marked (CE) and ACKs that tell of marks (ECE; a bit of "
        "AccECN's counter), each counted from the start.",
        OVER_TIME,
        "packets",
        lines,
    )
