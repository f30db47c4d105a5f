"""Draw the path between two captures: delay, queue, ACK spacing."""

from dataclasses import dataclass, replace

import numpy as np

from capture_analysis.ack_compression import COMPRESSED_BELOW
from capture_analysis.columns import BoolArray, IntArray
from capture_analysis.pictures.figure import OVER_TIME, Figure, Line
from capture_analysis.pictures.overview import LITTLE, SILENCE


@dataclass(frozen=True)
class Crossing:
    """Packets that passed both taps in one direction; shape (n,).

    Attributes:
        name: name of the direction.
        origin_ns: time that figures call 0.
        entered_ns: time at which each packet passed the tap nearer its sender, ascending.
        left_ns: time at which each packet passed the other tap, on the same clock.
        propagation_ns: delay of a packet without queueing and without transmission time.
        pure_ack: whether each packet is a pure ACK.
        lane: the sending half of each packet, 2 * flow + half.
    """

    name: str
    origin_ns: int
    entered_ns: IntArray
    left_ns: IntArray
    propagation_ns: int
    pure_ack: BoolArray
    lane: IntArray


def begins_ns(crossings: list[Crossing]) -> int:
    """Return the time from which on packets flow, ns; a few before a long silence do not count."""
    parts = [each.entered_ns for each in crossings if len(each.entered_ns)]
    if not parts:
        return 0
    times = np.sort(np.concatenate(parts))
    silent = np.diff(times) > SILENCE * (times[-1] - times[0])
    before = np.arange(1, len(times)) < LITTLE * len(times)
    ends = np.flatnonzero(silent & before)
    return int(times[ends[-1] + 1 if len(ends) else 0])


def one_way_delay(crossings: list[Crossing]) -> Figure:
    """Draw each packet's delay between the taps, minus the shortest."""
    lines = []
    for colour, each in enumerate(crossings):
        delay_ns = each.left_ns - each.entered_ns
        y = (delay_ns - delay_ns.min(initial=np.iinfo(np.int64).max)) / 1e6
        lines.append(Line(each.name, (each.entered_ns - each.origin_ns) / 1e9, y, "points", colour))
    drawn = Figure(
        "one-way-delay",
        "Queueing delay between the taps",
        "Time of each packet from one tap to the other, minus the shortest of its "
        "direction: its wait. The offset of two clocks cannot be told from the "
        "propagation delay, so the "
        "shortest is not known; the drift is taken out.",
        OVER_TIME,
        "ms",
        [line for line in lines if len(line.x)],
    )
    origin_ns = crossings[0].origin_ns if crossings else 0
    return replace(drawn, view=drawn.view_since((begins_ns(crossings) - origin_ns) / 1e9))


def queues(crossings: list[Crossing], view: tuple[float, float] | None = None) -> Figure:
    """Draw the number of packets in the queue of each direction.

    Args:
        crossings: packets of each direction.
        view: the part on which the picture opens, s.
    """
    lines = []
    for colour, each in enumerate(crossings):
        # An error of the clocks must not let a packet leave before it comes.
        left_ns = np.maximum(each.left_ns - each.propagation_ns, each.entered_ns)
        time_ns = np.concatenate((left_ns, each.entered_ns))
        change = np.repeat([-1, 1], len(each.entered_ns))
        order = np.argsort(time_ns, kind="stable")  # at equal times departures come first
        level = np.cumsum(change[order])
        last = np.diff(time_ns[order], append=np.iinfo(np.int64).max) > 0
        x = (time_ns[order][last] - each.origin_ns) / 1e9
        lines.append(Line(each.name, x, level[last].astype(np.float64), "steps", colour))
    return Figure(
        "queue",
        "Queues between the taps",
        "Packets that have passed one tap and, apart from the propagation delay, not yet "
        "the other, with the one in service. Each steep rise is a burst, often released "
        "by a bunch of "
        "ACKs; packets that were lost are not counted.",
        OVER_TIME,
        "packets",
        [line for line in lines if len(line.x)],
        view=view,
    )


def spacing_change(crossings: list[Crossing]) -> Figure:
    """Draw the spacing of ACKs on arrival over their spacing when sent."""
    lines, seen = [], []
    flowing_ns = begins_ns(crossings)
    for colour, each in enumerate(crossings):
        order = np.argsort(each.lane, kind="stable")
        order = order[(each.pure_ack & (each.entered_ns >= flowing_ns))[order]]
        same = np.diff(each.lane[order]) == 0
        sent_ms, arrived_ms = (
            np.diff(times[order])[same] / 1e6 for times in (each.entered_ns, each.left_ns)
        )
        drawn = (sent_ms > 0) & (arrived_ms > 0)
        seen.append(sent_ms[drawn])
        name = f"ACKs {each.name}"
        lines.append(Line(name, sent_ms[drawn], arrived_ms[drawn], "points", colour))
    every = np.concatenate([*seen, np.zeros(0)])
    if len(every):
        x = np.array([every.min(), every.max()])
        lines.append(Line("kept", x, x, "dashed", 6))
        lines.append(Line("compressed below", x, np.round(COMPRESSED_BELOW * x, 9), "dashed", 3))
    return Figure(
        "spacing-change",
        "ACK spacing before and after",
        "Each point is two successive ACKs: their spacing at the first tap, and at the "
        "second. On the diagonal the path kept their spacing; below it, it compressed "
        "them.",
        "spacing where sent, ms",
        "spacing on arrival, ms",
        [line for line in lines if len(line.x)],
        log_y=True,
        log_x=True,
    )
