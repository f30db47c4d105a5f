"""The pictures of a direction: names, views, and a note on omitted packets."""

from dataclasses import replace

import numpy as np

from capture_analysis.ack_compression import BUNCH_SERVICE_TIMES
from capture_analysis.pictures.ack_figures import ack_spacing, bunches, compression_cdf
from capture_analysis.pictures.direction import Direction
from capture_analysis.pictures.figure import Figure
from capture_analysis.pictures.flight_figures import (
    in_flight,
    marks,
    rates,
    round_trips,
    time_sequence,
)
from capture_analysis.pictures.overview import OVERVIEW_BINS
from capture_analysis.pictures.selection import Selected

# Length of detailed views, in round-trip times.
_VIEW_ROUND_TRIPS = 6

# The function that draws each picture, and its text in the command's help.
_OF_PACKETS = {
    "time-sequence": (time_sequence, "what is sent, acknowledged and allowed (tcptrace's)"),
    "ack-spacing": (ack_spacing, "time between acknowledgements"),
    "compression-cdf": (compression_cdf, "distribution of the compression factor"),
    "bunches": (bunches, "sizes of the bunches in which ACKs arrive"),
    "in-flight": (in_flight, "data sent and not acknowledged"),
    "rtt": (round_trips, "round-trip time"),
    "marks": (marks, "marks of ECN, and what ACKs tell of them"),
}
# The quantity of the overview, and its unit, for packets that a picture does not draw singly.
_REST = {"time-sequence": ("seq", 1), "in-flight": ("flight", 1), "rtt": ("rtt", 1_000_000)}
NAMES = {name: text for name, (_, text) in _OF_PACKETS.items()} | {
    "rates": "goodput and throughput over time"
}


def figure(selected: Selected, name: str) -> Figure:
    """Draw one of NAMES; without lines if the capture has no data for it."""
    direction = selected.direction
    if name == "rates":
        drawn = rates(direction, selected.overview)
    else:
        drawn = _OF_PACKETS[name][0](direction)
    if selected.cut:
        drawn = _with_rest(drawn, selected)
    moment = compressed_moment(direction) if name in ("time-sequence", "in-flight") else None
    first_s = (direction.begins_ns - direction.origin_ns) / 1e9
    return replace(drawn, view=moment or drawn.view_since(first_s)).with_stretch()


def figures(selected: Selected) -> list[Figure]:
    """Draw all pictures of a direction that are not empty."""
    return [each for each in (figure(selected, name) for name in NAMES) if each.lines]


def note(selected: Selected) -> str:
    """Describe in a sentence the packets that the pictures omit; empty if none."""
    if not selected.cut:
        return ""
    origin_ns = selected.direction.origin_ns
    start, stop = ((time_ns - origin_ns) / 1e9 for time_ns in _drawn_ns(selected))
    return (
        f"{len(selected.direction.packets):,} of the connection's {selected.total:,} packets are "
        f"drawn one by one, from {start:.6g} to {stop:.6g} s, where most ACKs come back to back. "
        f"Of the others, the range in each of {OVERVIEW_BINS:,} intervals is drawn."
    )


def _with_rest(drawn: Figure, selected: Selected) -> Figure:
    if drawn.id not in _REST:
        return drawn
    quantity, unit = _REST[drawn.id]
    origin_ns = selected.direction.origin_ns
    rest = selected.overview.line_of_rest(quantity, origin_ns, unit, _drawn_ns(selected))
    return replace(drawn, lines=[rest, *drawn.lines])


def _drawn_ns(selected: Selected) -> tuple[int, int]:
    """Return the time of the first and the last packet drawn singly."""
    time_ns = selected.direction.packets.time_ns
    return int(time_ns.min()), int(time_ns.max())


def compressed_moment(direction: Direction) -> tuple[float, float] | None:
    """Find some round trips around the largest bunch, s; None without a bunch.

    The largest bunch is the one that acknowledges most bytes.
    """
    if direction.ack_service_ns is None:
        return None
    acks = np.flatnonzero(direction.pure_acks())
    times = direction.seconds(acks)
    gap_ns = direction.tracked.gap_ns[acks]
    apart = (gap_ns < 0) | (gap_ns > BUNCH_SERVICE_TIMES * direction.ack_service_ns)
    starts = np.flatnonzero(apart)
    sizes = np.diff(starts, append=len(acks))
    acked = np.add.reduceat(direction.tracked.acked_bytes[acks], starts) if len(starts) else starts
    rtt_ns = direction.tracked.rtt_ns
    if not len(starts) or sizes.max() < 2 or not (rtt_ns >= 0).any():
        return None
    releases = np.where(sizes > 1, acked, 0)
    largest = starts[releases == releases.max()]
    middle = times[largest[len(largest) // 2]]
    round_trips = [rtt_ns[(rtt_ns >= 0) & (direction.packets.half == half)] for half in (0, 1)]
    medians_ns = [float(np.median(each)) for each in round_trips if len(each)]
    around = _VIEW_ROUND_TRIPS * sum(medians_ns) / 2e9
    return (float(max(middle - around, times[0])), float(middle + around)) if around else None
