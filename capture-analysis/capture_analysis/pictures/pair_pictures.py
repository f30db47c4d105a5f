"""What the pictures of two captures are drawn from: a part of the packets that passed both taps."""

from collections.abc import Sequence

import numpy as np

from capture_analysis.ack_compression import COMPRESSED_BELOW
from capture_analysis.columns import FlowTable
from capture_analysis.pictures.figure import Figure
from capture_analysis.pictures.queue_figures import Crossing, one_way_delay, queues, spacing_change
from capture_analysis.two_captures.crossings import View, is_ack
from capture_analysis.two_captures.match_rows import Rows
from capture_analysis.two_captures.pair_measure import Step

NAMES = ("A to B", "B to A")
# About so many packets are kept, of both ways together.
BUDGET_PACKETS = 200_000


class PictureSink:
    """Keeps, of the packets that it is given, the part in which most ACKs are compressed.

    Args:
        budget: packets of a part; the step that exceeds it belongs to it.
    """

    def __init__(self, budget: int = BUDGET_PACKETS) -> None:
        self._budget = budget
        self._open: list[tuple[Rows, Rows]] = []
        self._score = self._count = 0
        self._best: tuple[int, list[tuple[Rows, Rows]]] = (-1, [])
        self.total = 0

    def add(self, step: Step, flows: FlowTable) -> None:
        """Take the next packets."""
        del flows
        a_to_b, b_to_a = step.ways
        self._open.append((a_to_b.both, b_to_a.both))
        self._score += _compressed(a_to_b.acks) + _compressed(b_to_a.acks)
        packets = len(a_to_b.both) + len(b_to_a.both)
        self._count += packets
        self.total += packets
        if self._count >= self._budget:
            self._close()

    def _close(self) -> None:
        if self._score > self._best[0]:
            self._best = (self._score, self._open)
        self._open, self._score, self._count = [], 0, 0

    def crossings(self, origin_ns: int, propagation_ns: Sequence[int]) -> list[Crossing]:
        """The part that is kept, of each way; there are no more packets.

        Args:
            origin_ns: time that figures call 0.
            propagation_ns: of each way.
        """
        if self._count:
            self._close()
        parts = self._best[1]
        return [
            _crossing(way, origin_ns, propagation_ns[way], np.concatenate([p[way] for p in parts]))
            for way in ((0, 1) if parts else ())
        ]


def _compressed(acks: View) -> int:
    """How many gaps of ACKs shrank from one tap to the other."""
    same = np.diff(acks.direction) == 0
    sent, arrived = (np.diff(acks[name])[same] for name in ("first_ns", "second_ns"))
    return int(((sent > 0) & (arrived < COMPRESSED_BELOW * sent)).sum())


def _crossing(way: int, origin_ns: int, propagation_ns: int, rows: Rows) -> Crossing:
    return Crossing(
        NAMES[way],
        origin_ns,
        rows["first_ns"].copy(),
        rows["second_ns"].copy(),
        propagation_ns,
        is_ack(rows),
        rows["flow"].astype(np.int64) * 2 + rows["half"],
    )


def pair_figures(crossings: list[Crossing], period_ns: float | None) -> list[Figure]:
    """All that can be drawn.

    Args:
        crossings: of both ways.
        period_ns: of the queue, so that the picture opens on a few; None if it has none.
    """
    view = None
    times = [each.entered_ns for each in crossings if len(each.entered_ns)]
    if period_ns is not None and times:
        middle_ns = int(np.median(times[0])) - crossings[0].origin_ns
        view = ((middle_ns - 2 * period_ns) / 1e9, (middle_ns + 2 * period_ns) / 1e9)
    drawn = (queues(crossings, view), one_way_delay(crossings), spacing_change(crossings))
    return [figure for figure in drawn if figure.lines]


def note(crossings: list[Crossing], total: int) -> str:
    """What the pictures leave out; empty if nothing."""
    kept = sum(len(each.entered_ns) for each in crossings)
    if kept == total:
        return ""
    times = [t for each in crossings for t in (each.entered_ns.min(), each.entered_ns.max())]
    start, stop = ((int(t) - crossings[0].origin_ns) / 1e9 for t in (min(times), max(times)))
    return (
        f"Drawn are {kept:,} of the {total:,} packets that passed both taps, from {start:.6g} to "
        f"{stop:.6g} s, where most ACKs are compressed."
    )
