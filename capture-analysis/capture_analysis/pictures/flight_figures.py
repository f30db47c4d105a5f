"""Data in flight and round-trip time of a connection."""

import numpy as np

from capture_analysis.columns import FLAG_SYN
from capture_analysis.pictures.direction import Direction
from capture_analysis.pictures.figure import OVER_TIME, Figure, Line
from capture_analysis.tracking import Kind

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
    other = direction.packets.half != direction.half
    rows = np.flatnonzero(other & (direction.tracked.rtt_ns >= 0))
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
