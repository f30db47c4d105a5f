"""What a connection has under way, and how long it takes: in flight and round-trip time."""

import numpy as np

from capture_analysis.columns import FLAG_SYN
from capture_analysis.direction import Direction
from capture_analysis.figure import Figure, Line
from capture_analysis.tracking import Kind


def in_flight(direction: Direction) -> Figure:
    """Payload sent and not acknowledged, after each packet."""
    tracked = direction.tracked
    rows = np.flatnonzero(direction.data() | direction.pure_acks(Kind.ACK))
    level = tracked.in_flight_bytes[rows].astype(np.float64)
    lines = [Line("in flight", direction.seconds(rows), level, "steps", 0)]
    if direction.window_shift is not None:
        back = np.flatnonzero(direction.acknowledging())
        back = back[direction.packets.flags[back] & FLAG_SYN == 0]
        x, window, name = direction.seconds(back), direction.window_bytes(back), "receiver's window"
        lines.append(Line(name, x, window.astype(np.float64), "steps", 4))
    return Figure(
        "in-flight",
        "Data in flight",
        "Payload that the tap has seen and seen no acknowledgement of. It falls at once where "
        "compressed ACKs pass, and rises with the burst that they release.",
        "time, s",
        "bytes",
        [line for line in lines if len(line.x)],
    )


def round_trips(direction: Direction) -> Figure:
    """Time from a segment to the ACK of it, both at the tap."""
    other = direction.packets.half != direction.half
    rows = np.flatnonzero(other & (direction.tracked.rtt_ns >= 0))
    rtt_ms = direction.tracked.rtt_ns[rows] / 1e6
    return Figure(
        "rtt",
        "Round-trip time",
        "From a segment passing the tap to its acknowledgement passing it: queueing on both ways "
        "and the receiver's delay included, and only the part of the path beyond the tap. "
        "Segments sent again are left out (Karn).",
        "time, s",
        "ms",
        [Line("RTT", direction.seconds(rows), rtt_ms, "points", 0)] if len(rows) else [],
    )
