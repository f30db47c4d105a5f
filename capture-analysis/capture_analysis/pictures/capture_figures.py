"""The pictures of a direction: which there are, what they open on, what they leave out."""

from dataclasses import replace

import numpy as np

from capture_analysis.ack_compression import BUNCH_SERVICE_TIMES
from capture_analysis.pictures.ack_spacing_figure import ack_spacing
from capture_analysis.pictures.bunch_figures import bunches
from capture_analysis.pictures.compression_cdf import compression_cdf
from capture_analysis.pictures.direction import Direction
from capture_analysis.pictures.figure import Figure
from capture_analysis.pictures.flight_figures import in_flight, round_trips
from capture_analysis.pictures.overview import OVERVIEW_BINS
from capture_analysis.pictures.rate_figure import rates
from capture_analysis.pictures.selection import Selected
from capture_analysis.pictures.time_sequence import time_sequence

# Round-trip times that detailed views span.
_VIEW_ROUND_TRIPS = 6

# By name what draws it and the command's help.
_OF_PACKETS = {
    "time-sequence": (time_sequence, "what is sent, acknowledged and allowed (tcptrace's)"),
    "ack-spacing": (ack_spacing, "time between acknowledgements"),
    "compression-cdf": (compression_cdf, "distribution of the compression factor"),
    "bunches": (bunches, "sizes of the bunches in which ACKs arrive"),
    "in-flight": (in_flight, "data sent and not acknowledged"),
    "rtt": (round_trips, "round-trip time"),
}
# Which quantity of the overview shows what is not drawn to the packet, in which unit.
_REST = {"time-sequence": ("seq", 1), "in-flight": ("flight", 1), "rtt": ("rtt", 1_000_000)}
NAMES = {name: text for name, (_, text) in _OF_PACKETS.items()} | {
    "rates": "goodput and throughput over time"
}


def figure(selected: Selected, name: str) -> Figure:
    """One of NAMES of a direction; without lines if it cannot be drawn."""
    direction = selected.direction
    if name == "rates":
        return rates(direction, selected.overview)
    drawn = _OF_PACKETS[name][0](direction)
    if name in ("time-sequence", "in-flight"):
        drawn = replace(drawn, view=compressed_moment(direction))
    return _with_rest(drawn, selected) if selected.cut else drawn


def figures(selected: Selected) -> list[Figure]:
    """All that can be drawn of a direction."""
    return [each for each in (figure(selected, name) for name in NAMES) if each.lines]


def note(selected: Selected) -> str:
    """What the pictures leave out; empty if nothing."""
    if not selected.cut:
        return ""
    origin_ns = selected.direction.origin_ns
    start, stop = ((time_ns - origin_ns) / 1e9 for time_ns in _drawn_ns(selected))
    return (
        f"Drawn to the packet are {len(selected.direction.packets):,} of the connection's "
        f"{selected.total:,} packets, from {start:.6g} to {stop:.6g} s, where most ACKs are "
        f"compressed. The rest: the lowest to the highest in each of {OVERVIEW_BINS:,} intervals."
    )


def _with_rest(drawn: Figure, selected: Selected) -> Figure:
    if drawn.id not in _REST:
        return drawn
    quantity, unit = _REST[drawn.id]
    origin_ns = selected.direction.origin_ns
    rest = selected.overview.rest(quantity, origin_ns, unit, _drawn_ns(selected))
    return replace(drawn, lines=[rest, *drawn.lines])


def _drawn_ns(selected: Selected) -> tuple[int, int]:
    """From when to when packets are drawn."""
    time_ns = selected.direction.packets.time_ns
    return int(time_ns.min()), int(time_ns.max())


def compressed_moment(direction: Direction) -> tuple[float, float] | None:
    """Some round trips around a bunch that acknowledges most, s; None if there is no bunch."""
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
    halves = [rtt_ns[(rtt_ns >= 0) & (direction.packets.half == half)] for half in (0, 1)]
    around = _VIEW_ROUND_TRIPS * sum(float(np.median(each)) for each in halves if len(each)) / 2e9
    return (float(max(middle - around, times[0])), float(middle + around)) if around else None
