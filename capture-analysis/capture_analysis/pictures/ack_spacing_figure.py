"""Draw the spacing of ACKs over time.

The place of a cloud of points shows which link set its pace.
"""

import numpy as np

from capture_analysis.ack_compression import BUNCH_SERVICE_TIMES
from capture_analysis.pictures.direction import Direction
from capture_analysis.pictures.figure import OVER_TIME, Figure, Line

# A gap of 0 has no place on a logarithmic axis: it is drawn at one nanosecond.
_TIE_MS = 1e-6


def ack_spacing(direction: Direction) -> Figure:
    """Draw the gap before each pure ACK, with bunched ACKs as a separate line.

    The pace of both links is dashed.
    """
    # A gap from before the transfer is no spacing of its ACKs.
    begun_ns = direction.packets.time_ns - direction.tracked.gap_ns
    spaced = (direction.tracked.gap_ns >= 0) & (begun_ns >= direction.begins_ns)
    rows = np.flatnonzero(direction.pure_acks() & spaced)
    gap_ns, x = direction.tracked.gap_ns[rows], direction.seconds(rows)
    gap_ms = np.maximum(gap_ns / 1e6, _TIE_MS)
    ack_ns, data_ns = direction.ack_service_ns, direction.data_service_ns
    bunched = gap_ns <= (BUNCH_SERVICE_TIMES * ack_ns if ack_ns else -1)
    lines = [
        Line("ACKs", x[~bunched], gap_ms[~bunched], "points", 0),
        Line("bunched ACKs", x[bunched], gap_ms[bunched], "points", 1),
    ]
    paces = (("an ACK's transmission", ack_ns, 1), ("a segment's transmission", data_ns, 6))
    for name, pace_ns, colour in paces if len(x) else ():
        if pace_ns is not None:
            lines.append(Line(name, x[[0, -1]], np.full(2, round(pace_ns) / 1e6), "dashed", colour))
    return Figure(
        "ack-spacing",
        "ACK spacing",
        "Time from one acknowledgement to the next. ACKs that keep the data's pace lie at the "
        "transmission time of the segments that they acknowledge; compressed ones, at most "
        f"{BUNCH_SERVICE_TIMES} ACK transmission times apart, fall to that of an ACK.",
        OVER_TIME,
        "spacing, ms",
        [line for line in lines if len(line.x)],
        log_y=True,
    )
