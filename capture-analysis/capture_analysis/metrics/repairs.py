"""Repairs: the reasons for sending segments again.

Each retransmission has one kind, the first that holds:

    spurious    all of it had been acknowledged before
    time-out    it begins a repair after 0.2 s without a packet of its direction
    fast        it begins a repair, and a duplicate ACK or a SACK block has reported a gap since
                anything new was acknowledged
    other       it begins a repair otherwise: a tail loss probe, or ACKs that the capture lacks

A repair lasts until everything is acknowledged that had been sent when it began; segments sent
again in it have its kind. 0.2 s is Linux's shortest timer: an earlier time-out counts as other, and
a sender that pauses before it repairs counts as a time-out. `timeouts` (transfer_limits) counts the
silences themselves. After RFC 5681, RFC 6675 and RFC 8985; Wireshark's "fast retransmission" is
only the first of a repair, within 20 ms of at least the second duplicate ACK, and its "spurious"
means the same as here.

`duplicates_told` counts ACKs whose first SACK block lies below their number: the receiver already
had the bytes (RFC 2883). It also shows retransmissions that were spurious because the ACK was still
on its path; `spurious` lacks these, the other kinds have them.

Self-check: the four kinds sum to `retransmissions`.

Vantage: near the data's sender, where every segment that is sent again passes twice; any for
`duplicates_told`.
"""

from typing import Self

import numpy as np

from capture_analysis.columns import Mark
from capture_analysis.definition import Definition
from capture_analysis.facts.directions import Block
from capture_analysis.facts.facts import NEAR, Facts
from capture_analysis.facts.running_totals import LaneArray
from capture_analysis.metrics.transfer_limits import NOT_NEAR
from capture_analysis.one_capture.from_one import FromOne, Values
from capture_analysis.one_capture.tally import Tally
from capture_analysis.overriding import override
from capture_analysis.tracking import Repair

FAST = Definition(
    "retransmissions_fast", "1", "segments sent again because ACKs reported a gap", "RFC 5681"
)
TIMEOUT = Definition(
    "retransmissions_timeout", "1", "segments sent again in repairs that a time-out began"
)
SPURIOUS = Definition(
    "retransmissions_spurious", "1", "segments sent again after they were acknowledged"
)
OTHER = Definition("retransmissions_other", "1", "segments sent again for none of these reasons")
DUPLICATES_TOLD = Definition(
    "duplicates_told", "1", "ACKs that report data which arrived twice", "RFC 2883"
)


class Repairs(FromOne):
    """Retransmissions of each direction, by kind."""

    title = "Losses and their repair"
    vantage = "near the data's sender"
    per_direction = (FAST, TIMEOUT, SPURIOUS, OTHER, DUPLICATES_TOLD)

    def __init__(self) -> None:
        self._repairs = LaneArray(np.add, 0, len(Repair))
        self._duplicates = LaneArray(np.add, 0)

    @override
    def add(self, block: Block) -> None:
        rows = np.flatnonzero(block.tracked.repair)
        each = np.eye(len(Repair), dtype=np.int64)[block.tracked.repair[rows]]
        self._repairs.add_rows(block.direction[rows].astype(np.int64), each)
        packets = block.packets
        rows = np.flatnonzero(block.is_ack & ((packets.marks & Mark.SACK) != 0))
        rows = rows[(packets.sack_right[rows] - packets.ack[rows]).astype(np.int32) <= 0]
        self._duplicates.add_rows(block.direction[rows].astype(np.int64), np.ones_like(rows))

    @override
    def merge(self, other: Self) -> None:
        self._repairs.merge(other._repairs)
        self._duplicates.merge(other._duplicates)

    @override
    def of_direction(self, direction: int, tally: Tally, facts: Facts) -> Values:
        if not tally.segments(direction):
            return dict.fromkeys(self.per_direction, "no data")
        told = {DUPLICATES_TOLD: int(self._duplicates.value_of(direction))}
        if not facts.tap_at[direction] <= NEAR:
            return dict.fromkeys(self.per_direction, NOT_NEAR) | told
        repairs = self._repairs.value_of(direction)
        return {
            FAST: int(repairs[Repair.FAST]),
            TIMEOUT: int(repairs[Repair.TIMEOUT]),
            SPURIOUS: int(repairs[Repair.SPURIOUS]),
            OTHER: int(repairs[Repair.OTHER]),
            **told,
        }
