"""The arrival of ACKs: sizes of bunches, spacing, and the distribution of compression factors."""

import numpy as np

from capture_analysis.ack_compression import BUNCH_SERVICE_TIMES, COMPRESSED_BELOW, bunch_sizes
from capture_analysis.columns import IntArray
from capture_analysis.pictures.direction import Direction
from capture_analysis.pictures.figure import OVER_TIME, Figure, FloatArray, Line


def bunch_bars(name: str, sizes: IntArray, colour: int) -> Line:
    """Make bars of the share of ACKs, %, that travel in a bunch of each size.

    Args:
        name: name in the legend.
        sizes: number of ACKs in each bunch.
        colour: number in the palette.
    """
    values, counts = np.unique(sizes, return_counts=True)
    share = 100.0 * values * counts / max(sizes.sum(), 1)
    return Line(name, values.astype(np.float64), share, "bars", colour)


def bunches(direction: Direction) -> Figure:
    """Draw the sizes of a direction's ACK bunches.

    There are no lines if the rate of the ACKs' bottleneck is unknown.
    """
    lines = []
    if direction.ack_service_ns is not None:
        arrived_ns = direction.packets.time_ns[direction.pure_acks()]
        sizes = bunch_sizes(arrived_ns, direction.ack_service_ns)
        lines.append(bunch_bars("ACKs", sizes, 1))
    return Figure(
        "bunches",
        "ACK bunch sizes",
        "Share of the acknowledgements that come in a bunch of each size; bunched means spaced by "
        f"at most {BUNCH_SERVICE_TIMES} ACK transmission times. A bunch lets the sender release "
        "as many segments at once.",
        "acks in a bunch",
        "share of ACKs, %",
        [line for line in lines if len(line.x)],
    )


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


# Number of equally spaced shares at which the curve has a point: a picture has no more dots.
_POINTS = 1000


def factors(direction: Direction) -> FloatArray:
    """Compute each pure ACK's compression factor, sorted, shape (m,).

    Source: metrics/compression_factor.py. ACKs tied with the one before are left out; empty if the
        rate is unknown.
    """
    if direction.data_service_ns is None or not direction.segment_bytes:
        return np.zeros(0)
    rows = direction.pure_acks() & (direction.tracked.acked_bytes > 0)
    rows &= direction.tracked.gap_ns > 0
    pace = direction.data_service_ns / direction.segment_bytes
    found = direction.tracked.acked_bytes[rows] * pace / direction.tracked.gap_ns[rows]
    return np.sort(np.asarray(found))


def compression_cdf(direction: Direction) -> Figure:
    """Draw the share of the ACKs that have at most each compression factor."""
    found = factors(direction)
    lines = []
    if len(found):
        share = np.linspace(0, 100, min(_POINTS, len(found)) + 1)[1:]
        at = np.ceil(share * len(found) / 100).astype(np.int64) - 1
        # Six digits exceed any clock's resolution.
        lines.append(Line("ACKs", np.round(found[at], 6), np.round(share, 3), "steps", 0))
        marks = ((1 / COMPRESSED_BELOW, "compressed from here", 3), (direction.bound, "bound", 1))
        for factor, name, colour in marks:
            if factor is not None:
                x, y = np.full(2, round(factor, 6)), np.array([0.0, 100.0])
                lines.append(Line(name, x, y, "dashed", colour))
    return Figure(
        "compression-cdf",
        "Compression factors",
        "How many times closer ACKs came than the data that they acknowledge can have arrived. "
        "ACKs that keep the data's pace are at 1; a queue can compress them up to the bound, the "
        "transmission time of their data over their own. Points beyond it are artefacts "
        "of the capture, or of a wrong estimate of the rate.",
        "compression factor",
        "share of the ACKs, %",
        lines,
        log_x=True,
    )
