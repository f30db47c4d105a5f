"""Choose the packets of two captures to draw, and draw them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from capture_analysis.ack_compression import COMPRESSED_BELOW
from capture_analysis.flow_table import FlowTable
from capture_analysis.overriding import override
from capture_analysis.pictures.figure import Figure
from capture_analysis.pictures.queue_figures import Crossing, one_way_delay, queues, spacing_change
from capture_analysis.two_captures.from_pair import Step
from capture_analysis.two_captures.match_rows import Rows
from capture_analysis.two_captures.packets_between import View, is_ack
from capture_analysis.two_captures.pair import Sink
from capture_analysis.two_captures.pair_document import analyse_pair

_WAYS = ("A to B", "B to A")
# The figures by name, and their texts in the command's help.
FIGURES = {
    "queue": "packets between the taps",
    "one-way-delay": "each packet's wait between the taps",
    "spacing-change": "spacing of ACKs before and after",
}
# Approximate number of packets to keep, for both directions together.
BUDGET_PACKETS = 200_000


class PictureSink(Sink):
    """Keeps the part of the packets with most compressed ACKs.

    Args:
        budget: packets of a part; the step that exceeds it still belongs to it.
    """

    def __init__(self, budget: int = BUDGET_PACKETS) -> None:
        self._budget = budget
        self._open: list[tuple[Rows, Rows]] = []
        self._score = self._count = 0
        self._best: tuple[int, list[tuple[Rows, Rows]]] = (-1, [])
        self.total = 0

    @override
    def add(self, step: Step, flows: FlowTable) -> None:
        a_to_b, b_to_a = step.crossings
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
        """Return the kept packets of each direction, after the last packet.

        Args:
            origin_ns: time that figures call 0.
            propagation_ns: propagation delay of each direction.
        """
        if self._count:
            self._close()
        parts = self._best[1]
        return [
            _crossing(
                each, origin_ns, propagation_ns[each], np.concatenate([p[each] for p in parts])
            )
            for each in ((0, 1) if parts else ())
        ]


def _compressed(acks: View) -> int:
    """Count the ACK gaps that shrank from one tap to the other."""
    same = np.diff(acks.direction) == 0
    sent, arrived = (np.diff(acks[name])[same] for name in ("first_ns", "second_ns"))
    return int(((sent > 0) & (arrived < COMPRESSED_BELOW * sent)).sum())


def _crossing(direction: int, origin_ns: int, propagation_ns: int, rows: Rows) -> Crossing:
    return Crossing(
        _WAYS[direction],
        origin_ns,
        rows["first_ns"].copy(),
        rows["second_ns"].copy(),
        propagation_ns,
        is_ack(rows),
        rows["flow"].astype(np.int64) * 2 + rows["half"],
    )


def draw_pair(
    paths: tuple[Path, Path], *, inside: bool = False
) -> tuple[dict[str, Any], list[Figure], str]:
    """Measure two captures of one path, and draw the path between them; for `inside` see Capture.

    Returns: the document (pair_document.py); all figures of FIGURES that are not empty; a sentence
        on omitted packets.
    Raises: AnalysisError for the reasons of analyse_pair.
    """
    sink = PictureSink()
    content = analyse_pair(*paths, inside=inside, sink=sink)
    directions = content["ways"].values()
    propagation_ns = [each["facts"]["propagation_ns"] for each in directions]
    crossings = sink.crossings(content["captures"][0]["first_ns"], propagation_ns)
    periods = [each.get("oscillation_period", {}).get("value") for each in directions]
    view = _view(crossings, next(filter(None, periods), None))
    figures = (queues(crossings, view), one_way_delay(crossings), spacing_change(crossings))
    return (
        content,
        [each.with_stretch() for each in figures if each.lines],
        _note(crossings, sink.total),
    )


def _view(crossings: list[Crossing], period_s: float | None) -> tuple[float, float] | None:
    """Choose a view of a few periods of the queue, s; None without a period."""
    times = [each.entered_ns for each in crossings if len(each.entered_ns)]
    if period_s is None or not times:
        return None
    middle_s = (int(np.median(times[0])) - crossings[0].origin_ns) / 1e9
    return middle_s - 2 * period_s, middle_s + 2 * period_s


def _note(crossings: list[Crossing], total: int) -> str:
    """Describe in a sentence the packets that the pictures omit; empty if none."""
    kept = sum(len(each.entered_ns) for each in crossings)
    if kept == total:
        return ""
    times = [t for each in crossings for t in (each.entered_ns.min(), each.entered_ns.max())]
    start, stop = ((int(t) - crossings[0].origin_ns) / 1e9 for t in (min(times), max(times)))
    return (
        f"Drawn are {kept:,} of the {total:,} packets that passed both taps, from {start:.6g} to "
        f"{stop:.6g} s, where most ACKs are compressed."
    )
