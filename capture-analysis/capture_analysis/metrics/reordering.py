"""Reordering: packets that arrive after a packet that was sent later.

A packet is reordered if a packet that the same half of the connection sent later arrived before it
(RFC 4737, type-P-reordered, by capture times). Its extent is the time by which the overtaking
packet was sent later, the largest if there are several. Units packets, 1 and ns. Copies are left
out.
"""

import numpy as np

from capture_analysis.definition import Definition
from capture_analysis.facts.running_totals import LaneArray
from capture_analysis.overriding import override
from capture_analysis.two_captures.from_pair import FromPair, Step, Values
from capture_analysis.two_captures.packets_between import ABSENT, Crossings, View

REORDERED = Definition(
    "reordered", "packets", "packets that a packet sent later overtook between the taps", "RFC 4737"
)
REORDERED_SHARE = Definition(
    "reordered_share", "1", "reordered packets over those that passed both taps", "RFC 4737", most=1
)
REORDERED_EXTENT_MAX = Definition(
    "reordered_extent_max",
    "ns",
    "longest time by which an overtaking packet was sent later",
    "RFC 4737",
)


class Reordering(FromPair):
    """Packets of each direction's sender that were overtaken between the taps."""

    title = "Reordering between the taps"
    picture = "one-way-delay"
    per_direction = (REORDERED, REORDERED_SHARE, REORDERED_EXTENT_MAX)

    @override
    def start(self) -> None:
        self._latest = LaneArray(np.maximum, ABSENT)
        self._counts = LaneArray(np.add, 0, 2)
        self._extent = LaneArray(np.maximum, 0)

    @override
    def add(self, step: Step) -> None:
        for crossings in step.crossings:
            self._take(crossings)

    def _take(self, crossings: Crossings) -> None:
        view = View(crossings.arrived, crossings.arrived["first_ns"] != ABSENT)
        if not len(view):
            return
        sent = view["first_ns"]
        # Running maximum of the sending times of each half; an offset of `apart` separates the
        # halves.
        base = int(sent.min())
        rank = np.repeat(np.arange(len(view.starts)), np.diff(view.starts, append=len(sent)))
        apart = int(sent.max()) - base + 1
        before = np.maximum(self._latest.values_of(view.directions), base)
        lifted = sent - base + rank * apart
        lifted[view.starts] = np.maximum(
            lifted[view.starts], before - base + rank[view.starts] * apart
        )
        latest = np.maximum.accumulate(lifted) - rank * apart + base
        behind = latest - sent
        self._counts.add(
            view.directions, np.stack((view.sum(behind > 0), view.sum(behind >= 0)), axis=1)
        )
        self._extent.add(view.directions, np.maximum.reduceat(behind, view.starts))
        self._latest.add(view.directions, np.maximum.reduceat(latest, view.starts))

    @override
    def of_direction(self, direction: int) -> Values:
        count, total = (int(n) for n in self._counts.value_of(direction))
        return {
            REORDERED: count,
            REORDERED_SHARE: count / total if total else "no packet passed both taps",
            REORDERED_EXTENT_MAX: self._extent.value_of(direction),
        }
