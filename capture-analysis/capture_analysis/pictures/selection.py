"""Read a capture a second time for the pictures of some directions.

If a connection has more packets than the budget, the part with most compressed ACKs is kept, and
the extremes in each of OVERVIEW_BINS intervals of the whole.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np

from capture_analysis.ack_compression import COMPRESSED_BELOW
from capture_analysis.annotation.events import Events, Group
from capture_analysis.annotation.finding import Finder
from capture_analysis.columns import Packets, concatenate
from capture_analysis.facts.directions import Block
from capture_analysis.facts.facts import Facts
from capture_analysis.facts.running_totals import Previous
from capture_analysis.flow_table import FlowTable
from capture_analysis.metrics.compression_factor import bound_factor
from capture_analysis.one_capture.single import Measured
from capture_analysis.one_capture.tally import Tally
from capture_analysis.pictures.direction import Direction
from capture_analysis.pictures.overview import Overview
from capture_analysis.reading.capture import Capture
from capture_analysis.reading.times import Times
from capture_analysis.tracking import Tracked, Tracker

# Packets on a page, for all its connections together.
BUDGET_PACKETS = 300_000


@dataclass(frozen=True)
class Selected:
    """A direction with the packets that were kept.

    Attributes:
        number: 2 * flow + half.
        direction: the packets kept.
        first: number of the connection's packets before them.
        total: number of the connection's packets.
        overview: extremes and sums of all packets of the direction.
        events: its events by kind.
    """

    number: int
    direction: Direction
    first: int
    total: int
    overview: Overview
    events: list[Group]

    @property
    def cut(self) -> bool:
        """True if some packets of the connection were not kept."""
        return len(self.direction.packets) < self.total


class _Keeper:
    """Keeps a connection's block of packets with most compressed ACKs.

    Args:
        budget: packets of a block.
        paces_ns: transmission time of a byte of payload of each half's data; NaN if unknown.
    """

    def __init__(self, budget: int, paces_ns: Sequence[float]) -> None:
        self._budget, self._paces_ns = budget, paces_ns
        self._parts: list[tuple[Packets, Tracked]] = []
        self._score = self._count = 0
        self._best: tuple[int, int, list[tuple[Packets, Tracked]]] = (-1, 0, [])
        self.total = 0

    def add(self, packets: Packets, tracked: Tracked) -> None:
        """Take the connection's next packets, int64."""
        start = 0
        while start < len(packets):
            stop = min(start + self._budget - self._count, len(packets))
            part = packets.where(slice(start, stop)), tracked.where(slice(start, stop))
            self._parts.append(part)
            self._score += self._compressed(*part)
            self._count += stop - start
            self.total += stop - start
            if self._count == self._budget:
                self._close()
            start = stop

    def _compressed(self, packets: Packets, tracked: Tracked) -> int:
        pace_ns = np.array(self._paces_ns)[1 - packets.half]
        least_ns = COMPRESSED_BELOW * tracked.acked_bytes * pace_ns
        return int(((tracked.gap_ns >= 0) & (tracked.gap_ns < least_ns)).sum())

    def _close(self) -> None:
        if self._score > self._best[0]:
            self._best = (self._score, self.total - self._count, self._parts)
        self._parts, self._score, self._count = [], 0, 0

    def best_block(self) -> tuple[int, Packets, Tracked]:
        """Return the number of packets before the best block, and the block.

        Call it after the last packet.
        """
        if self._count:
            self._close()
        _, first, parts = self._best
        tracked = Tracked(
            *(np.concatenate([getattr(t, f.name) for _, t in parts]) for f in fields(Tracked))
        )
        return first, concatenate([packets for packets, _ in parts]), tracked


def select(
    capture: Capture, measured: Measured, numbers: Sequence[int], budget: int = BUDGET_PACKETS
) -> list[Selected]:
    """Read a capture again for some directions that carry data.

    Args:
        capture: the capture, opened again.
        measured: its measurements.
        numbers: the directions, 2 * flow + half.
        budget: number of packets to keep, for all connections together.
    """
    chosen = sorted({number // 2 for number in numbers})
    if not chosen:
        return []
    facts, tally = measured.facts, measured.tally
    paces = facts.acked_ns_per_byte.reshape(-1, 2)
    keepers = {flow: _Keeper(max(budget // len(chosen), 1), paces[flow]) for flow in chosen}
    overviews = {number: Overview(number % 2, *_span_ns(tally, number)) for number in numbers}
    events = Events(numbers, every_packet=len(chosen) == len(measured.flows))
    finder, stamps = Finder(events), Previous()
    follow, origin_ns = Tracker(), None
    for chunk in Times().correct_chunks(capture.chunks()):
        if origin_ns is None and len(chunk):
            origin_ns = int(chunk.time_ns[0])
        mine = chunk.where(np.isin(chunk.flow, chosen))
        tracked = follow.track(mine, capture.flows)
        finder.add(Block(mine, tracked, facts, stamps))
        for flow in chosen:
            rows = np.flatnonzero(mine.flow == flow)
            part = mine.where(rows).widen(), tracked.where(rows).widen()
            keepers[flow].add(*part)
            for number in {2 * flow, 2 * flow + 1} & overviews.keys():
                overviews[number].add(*part)
    finder.finish()
    kept = {flow: keeper.best_block() for flow, keeper in keepers.items()}
    selected, flows = [], measured.flows
    for number in numbers:
        first, packets, tracked = kept[number // 2]
        kept_part = Direction("", number % 2, origin_ns or 0, packets, tracked)
        direction = replace(
            _describe(kept_part, flows, facts, number), begins_ns=overviews[number].begins_ns()
        )
        total = keepers[number // 2].total
        found = events.groups(number, flows)
        selected.append(Selected(number, direction, first, total, overviews[number], found))
    return selected


def _describe(direction: Direction, flows: FlowTable, facts: Facts, number: int) -> Direction:
    return replace(
        direction,
        name=flows.label(*divmod(number, 2)),
        window_shift=None if facts.window_shift[number] < 0 else int(facts.window_shift[number]),
        segment_bytes=int(facts.segment_bytes[number]),
        data_service_ns=_positive(facts.data_service_ns[number]),
        ack_service_ns=_positive(facts.ack_service_ns[number]),
        bound=_positive(bound_factor(number, facts)) if facts.header_bytes[number] else None,
    )


def _positive(value: float) -> float | None:
    return float(value) if np.isfinite(value) and value > 0 else None


def _span_ns(tally: Tally, number: int) -> tuple[int, int]:
    """Return the time of a direction's first data, and of its last packet."""
    return int(tally.first_ns.value_of(number)), max(
        int(tally.last_ns.value_of(number)), int(tally.last_ack_ns.value_of(number))
    )
