"""Synchronisation of losses: connections that lose at the same time.

    index = mean over loss epochs of (directions that lose - 1) / (directions with data - 1)

Unit 1: 1 if all lose in every epoch, 0 if one at a time. An epoch is a bin of time (2^k ns) of
about four round trip times: the shortest one of each connection, and of these the longest. A
direction loses in an epoch if one of its segments was sent again or came late; several such
segments in one epoch count once.

Vantage: any. Reordering counts as loss; an epoch that a bin's edge divides counts as two.
"""

from collections import Counter
from collections.abc import Sequence
from typing import ClassVar, Self

import numpy as np

from capture_analysis.one_capture.blocks import Block
from capture_analysis.one_capture.facts import Facts
from capture_analysis.one_capture.lanes import LaneArray
from capture_analysis.one_capture.measure import Measure, Quantity, Values
from capture_analysis.one_capture.tally import Tally
from capture_analysis.tracking import Kind

ROUND_TRIPS = 4
# The width of an epoch without a known round trip time: 2^27 ns, 134 ms.
_UNKNOWN_SHIFT = 27
_NEVER = -1


class LossSynchronisation(Measure):
    """Number of loss epochs, and how many directions lose together in one."""

    title = "Synchronisation of losses"
    per_capture: ClassVar[Sequence[Quantity]] = (
        Quantity("loss_epochs", "1", "epochs in which any direction loses"),
        Quantity("loss_synchronisation", "1", "share of the others that lose in one's epoch"),
    )

    def __init__(self) -> None:
        self._shift: int | None = None
        self._last = LaneArray(np.maximum, _NEVER)
        # Directions that lose in each epoch with a loss: no more entries than losses.
        self._losing: Counter[int] = Counter()

    def add(self, block: Block) -> None:
        """Take the next packets."""
        if self._shift is None:
            self._shift = _epoch_shift(block.facts)
        kind = block.tracked.kind
        rows = np.flatnonzero((kind == Kind.RETRANSMISSION) | (kind == Kind.LATE_DATA))
        direction = block.direction[rows].astype(np.int64)
        epoch = block.packets.time_ns[rows] >> self._shift
        order = np.lexsort((epoch, direction))
        direction, epoch = direction[order], epoch[order]
        differs = (np.diff(direction, prepend=-1) != 0) | (np.diff(epoch, prepend=-1) != 0)
        new = differs & (epoch > self._last.at(direction))
        self._losing.update(epoch[new].tolist())
        self._last.add_rows(direction, epoch)

    def merge(self, other: Self) -> None:
        """Add the results of another instance, which took other connections."""
        self._losing.update(other._losing)

    def of_capture(self, tally: Tally, facts: Facts) -> Values:
        """Return the quantities of the whole capture, by name."""
        del facts
        epochs, others = len(self._losing), len(tally.directions()) - 1
        if not epochs or others < 1:
            why = "no loss" if others >= 1 else "fewer than two directions with data"
            return {"loss_epochs": epochs, "loss_synchronisation": why}
        together = sum(self._losing.values()) - epochs
        return {"loss_epochs": epochs, "loss_synchronisation": together / (epochs * others)}


def _epoch_shift(facts: Facts) -> int:
    known = facts.round_trip_ns[~np.isnan(facts.round_trip_ns)]
    if not len(known):
        return _UNKNOWN_SHIFT
    return max(int(ROUND_TRIPS * known.max()), 1).bit_length()
