"""Standing queue: the share of time in which a queue on the path never emptied.

Near the data's sender a queue shows in round trips. Elsewhere it shows in the time from a segment's
time stamp to its passing of the tap; only the growth of that time is known. Delays are taken in
groups of sixteen: delayed ACKs, and receivers that poll now and then, lengthen some of the delays,
but hardly ever all sixteen. If even the shortest of sixteen exceeds the shortest so far by a fifth
of the path's round trip and 1 ms, a queue stood meanwhile. Near the sender a queue also stood if
that delay exceeds the handshake's round trip and the time from one segment to the next by as much:

    standing_queue = time of groups in which a queue stood / time of all but the first

Unit 1. In a silence, and while data are sent again, only one round trip counts as time with a
queue. The first sixteen delays show the path without the queue, because they build it. With time
stamps, the threshold grows by two ticks and by a ten thousandth of the time, for clocks that drift
apart. The queue may hold others' packets; by round trips it may be on the ACKs' path. A link whose
queue stands is busy all the time: it is full, whatever its rate. A queue that was never empty in
the capture, from the handshake on, is not seen.

Vantage: any with packets of both directions; beyond the sender only with time stamps.
"""

from typing import Self

import numpy as np

from capture_analysis.definition import Definition
from capture_analysis.facts.directions import Block
from capture_analysis.facts.facts import NEAR, Facts
from capture_analysis.facts.running_totals import LaneArray
from capture_analysis.one_capture.evidence import missing_place
from capture_analysis.one_capture.from_one import FromOne, Values
from capture_analysis.one_capture.tally import Tally
from capture_analysis.overriding import override

TOGETHER = 16  # delays in a group, as in clib/standing.c
_KEPT = 11  # length of struct ca_standing in clib/standing.h, the results last
NO_STAMPS = "not captured near the data's sender, and its time stamps' tick is not known"
TOO_FEW = f"fewer than {2 * TOGETHER} delays"

STANDING_QUEUE = Definition(
    "standing_queue", "1", "share of time in which a queue on the path never emptied", most=1
)


class StandingQueue(FromOne):
    """Share of each direction's time with a queue that stands."""

    title = "Standing queue"
    picture = "rtt"
    per_direction = (STANDING_QUEUE,)

    def __init__(self) -> None:
        self._kept = LaneArray(np.add, 0, _KEPT)

    @override
    def add(self, block: Block) -> None:
        """Take the next packets; in C (clib/standing.c)."""
        block.native.add("ca_standing_add", self._kept.address(block.native.directions))

    @override
    def merge(self, other: Self) -> None:
        self._kept.merge(other._kept)

    @override
    def of_direction(self, direction: int, tally: Tally, facts: Facts) -> Values:
        *before, spent_ns, queue_ns, whole_ns, standing_ns = map(
            int, self._kept.value_of(direction)
        )
        if whole_ns:
            # At the end fewer than sixteen delays show no queue, but no queue explains a silence.
            last_ns, heard_ns, _, floor_ns = before[-4:]
            silent_ns = max(spent_ns - queue_ns, 0) + max(heard_ns - last_ns - floor_ns, 0)
            return {STANDING_QUEUE: standing_ns / (whole_ns + silent_ns)}
        at = facts.tap_at[direction]
        known = at <= NEAR or facts.tick_whole_ns[direction ^ 1] > 0
        why = TOO_FEW if known else NO_STAMPS
        return {STANDING_QUEUE: missing_place(direction, tally) if np.isnan(at) else why}
