"""Draw the distribution of the compression factor, and its bound."""

import numpy as np

from capture_analysis.ack_compression import COMPRESSED_BELOW
from capture_analysis.pictures.direction import Direction
from capture_analysis.pictures.figure import Figure, FloatArray, Line

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
