"""Receiving: reordering, delayed ACKs and reads, as a capture near the receiver shows them.

Late data fill a hole. Late data that were sent again come at least one loop after the hole was
seen: the time from the tap to the sender and back, here less a tenth:

    reordered_segments = late segments that came sooner: a later one overtook them on the path
    repaired_segments  = late segments that came no sooner: lost before the tap, and sent again
    acks_delayed       = ACKs of new data that were sent 10 ms or more after the newest of it / all
    application_reads  = ACKs that raise the window's edge and acknowledge nothing new
    unread_max         = largest shortfall of the announced window from its widest so far
    window_shut        = time for which less than a full segment of window was announced / all

Units: 1, and bytes. Only a direction's sixteen newest holes are known; late data of other holes are
of neither kind. Data reordered by more than the loop count as sent again. A receiver whose window
counts its own overhead announces less than it has free, so that unread_max is a bound. Delays
include those of a tap that is not on the receiver's host itself.

Self-check: reordered and repaired segments are at most `late_segments`.

Vantage: within a tenth of the round trip from the data's receiver, with packets of both directions.
The window's scale needs the handshake. After RFC 4737 and RFC 1122, 4.2.3.2.
"""

from typing import Self

import numpy as np

from capture_analysis.definition import Definition
from capture_analysis.facts.directions import Block
from capture_analysis.facts.facts import NEAR, Facts
from capture_analysis.facts.native_block import Chains
from capture_analysis.facts.running_totals import LaneArray
from capture_analysis.metrics.transfer_limits import missing_scale
from capture_analysis.one_capture.evidence import missing_place
from capture_analysis.one_capture.from_one import FromOne, Value, Values
from capture_analysis.one_capture.tally import Tally
from capture_analysis.overriding import override

_KEPT, _UNREAD = 8, 7  # length of struct ca_receiving in clib/receiving.h, and index of `unread`
_SUMS = 7  # length of struct ca_received
NOT_NEAR_RECEIVER = "not captured near the data's receiver"
NO_DELAYS = "no ACK of data that the capture has"
NO_WINDOWS = "fewer than two ACKs"

REORDERED_SEGMENTS = Definition(
    "reordered_segments", "1", "late segments that a later one overtook on the path", "RFC 4737"
)
REPAIRED_SEGMENTS = Definition(
    "repaired_segments", "1", "late segments that were lost before the tap, and sent again"
)
ACKS_DELAYED = Definition(
    "acks_delayed",
    "1",
    "share of the ACKs of new data that the receiver sent 10 ms or more after it",
    "RFC 1122",
    most=1,
)
APPLICATION_READS = Definition(
    "application_reads", "1", "ACKs that raise the window's edge and acknowledge nothing new"
)
UNREAD_MAX = Definition(
    "unread_max", "bytes", "largest shortfall of the announced window from its widest so far"
)
WINDOW_SHUT = Definition(
    "window_shut", "1", "share of time with less than a full segment of window announced", most=1
)


class Receiving(FromOne):
    """Reordering, delayed ACKs and reads of each direction's receiver."""

    title = "What the receiver does"
    vantage = "near the data's receiver"
    per_direction = (
        REORDERED_SEGMENTS,
        REPAIRED_SEGMENTS,
        ACKS_DELAYED,
        APPLICATION_READS,
        UNREAD_MAX,
        WINDOW_SHUT,
    )

    def __init__(self) -> None:
        self._kept = LaneArray(np.maximum, -1, _KEPT)
        self._sums = LaneArray(np.add, 0, _SUMS)
        self._holes = Chains()

    @override
    def add(self, block: Block) -> None:
        """Take the next packets; in C (clib/receiving.c)."""
        if (block.facts.tap_at >= 1 - NEAR).any():
            directions, data = block.native.directions, int(block.is_data.sum())
            kept, sums = self._kept.address(directions), self._sums.address(directions)
            self._holes.add(block.native, "ca_receiving_add", kept, sums, data)

    @override
    def merge(self, other: Self) -> None:
        self._kept.merge(other._kept)
        self._sums.merge(other._sums)

    @override
    def of_direction(self, direction: int, tally: Tally, facts: Facts) -> Values:
        if not facts.tap_at[direction] >= 1 - NEAR:
            unknown = np.isnan(facts.tap_at[direction])
            why = missing_place(direction, tally) if unknown else NOT_NEAR_RECEIVER
            return dict.fromkeys(self.per_direction, why)
        sums = [int(n) for n in self._sums.value_of(direction)]
        reordered, repaired, timed, delayed, reads, shut_ns, whole_ns = sums
        scaled = not (unscaled := missing_scale(direction, facts))
        shut: Value = shut_ns / whole_ns if whole_ns else NO_WINDOWS
        return {
            REORDERED_SEGMENTS: reordered,
            REPAIRED_SEGMENTS: repaired,
            ACKS_DELAYED: delayed / timed if timed else NO_DELAYS,
            APPLICATION_READS: reads,
            UNREAD_MAX: (
                max(int(self._kept.value_of(direction)[_UNREAD]), 0) if scaled else unscaled
            ),
            WINDOW_SHUT: shut if scaled else unscaled,
        }
