"""Limits from afar: what a transfer waits for, seen at its receiver or on the path.

The ACKs at the tap reach the sender later, and the data at the tap was sent earlier. Both delays
together are the loop from the tap to the sender and back; a tenth of it and 1 ms are added for
variation. With ACKs delayed by that much, packets are in the order in which the sender saw them.
The time from one to the next has the first cause that holds:

    recovery        data is missing below the data seen
    receive window  a full segment more would exceed the window that the receiver announced
    sender          otherwise: the sender held back, by its congestion window or because its
                    application had nothing to send; only a capture near the sender distinguishes
                    these

Self-check: the shares sum to 1. If queues add more to the loop than the tenth, full windows look
like a sender that holds back. Without the handshake the scale of windows is unknown.

Vantage: beyond a tenth of the round trip from the data's sender, with packets of both directions.
"""

from collections.abc import Sequence
from typing import ClassVar, Self

import numpy as np
from typing_extensions import override

from capture_analysis.definition import Definition
from capture_analysis.facts.blocks import Block
from capture_analysis.facts.facts import NEAR, Facts
from capture_analysis.facts.lanes import LaneArray
from capture_analysis.facts.walk import Chains
from capture_analysis.metrics.transfer_limits import NO_SCALE_SEEN, NO_TIME
from capture_analysis.one_capture.from_one import FromOne, Values
from capture_analysis.one_capture.tally import Tally

RECOVERY, RECEIVER, SENDER = range(3)
CAUSES = 3
_KEPT = 7  # length of struct ca_afar in clib/afar.h
NOT_FAR = "captured near the data's sender, or at an unknown place"

AFAR_RECOVERY = Definition(
    "afar_recovery", "1", "share of time in which data was missing below the data seen", most=1
)
AFAR_RECEIVE_WINDOW = Definition(
    "afar_receive_window",
    "1",
    "share of time in which the announced window was full when ACKs reached the sender",
    most=1,
)
AFAR_SENDER = Definition(
    "afar_sender",
    "1",
    "share of time in which the sender held back: its congestion window or its application",
    most=1,
)


class LimitsFromAfar(FromOne):
    """The cause of waiting in each direction, seen from beyond the data's sender."""

    title = "What limits the transfer, from afar"
    vantage = "beyond the data's sender"
    per_direction: ClassVar[Sequence[Definition]] = (
        AFAR_RECOVERY,
        AFAR_RECEIVE_WINDOW,
        AFAR_SENDER,
    )

    def __init__(self) -> None:
        self._ns = LaneArray(np.add, 0, CAUSES)
        self._kept = LaneArray(np.maximum, -1, _KEPT)
        self._coming = Chains()  # ACKs between tap and sender

    @override
    def add(self, block: Block) -> None:
        """Take the next packets; in C (clib/afar.c)."""
        if (block.facts.tap_at > NEAR).any():
            directions, acks = block.walk.directions, int(block.is_ack.sum())
            kept, spent = self._kept.address(directions), self._ns.address(directions)
            self._coming.walk(block, "ca_afar_add", kept, spent, acks)

    @override
    def merge(self, other: Self) -> None:
        self._ns.merge(other._ns)

    @override
    def of_direction(self, direction: int, tally: Tally, facts: Facts) -> Values:
        if not facts.tap_at[direction] > NEAR:
            return dict.fromkeys(self.per_direction, NOT_FAR)
        spent = [int(n) for n in self._ns.of(direction)]
        if not sum(spent):
            return dict.fromkeys(self.per_direction, NO_TIME)
        shares = [each / sum(spent) for each in spent]
        scaled = facts.window_shift[direction] >= 0
        return {
            AFAR_RECOVERY: shares[RECOVERY],
            AFAR_RECEIVE_WINDOW: shares[RECEIVER] if scaled else NO_SCALE_SEEN,
            AFAR_SENDER: shares[SENDER] if scaled else NO_SCALE_SEEN,
        }
