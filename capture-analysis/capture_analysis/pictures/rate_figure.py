"""Goodput and throughput of a whole direction over time."""

import numpy as np

from capture_analysis.pictures.direction import Direction
from capture_analysis.pictures.figure import OVER_TIME, Figure, Line
from capture_analysis.pictures.overview import OVERVIEW_BINS, RATE_BINS, Overview


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
