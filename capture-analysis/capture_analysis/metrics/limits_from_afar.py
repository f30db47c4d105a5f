"""Limits from afar: what a transfer waits for, as its receiver or the path sees it.

What the tap sees of the ACKs reaches the sender later, and data were sent earlier than they pass.
Both together take the loop from the tap to the sender and back, a tenth of it and 1 ms added for
what varies. With ACKs that much later the packets are in the order in which the sender had them.
The time from one to the next has the first cause that holds:

    recovery           data are missing below those that were seen
    receive window     a full segment more would exceed the window that the receiver announced
    sender             otherwise: the sender held back, by its congestion window or because its
                       application had nothing to send; only a capture near it tells which

Self-check: the shares sum to 1. Where queues add more to the loop than the tenth, full windows look
like a sender that holds back. Without the handshake the scale of windows is unknown.

Vantage: beyond a tenth of the round trip from the data's sender, with packets of both ways.
"""

from collections.abc import Sequence
from typing import ClassVar, Self

import numpy as np
from typing_extensions import override

from capture_analysis.columns import BoolArray, IntArray
from capture_analysis.definition import Definition
from capture_analysis.facts.blocks import Block, View
from capture_analysis.facts.facts import NEAR, Facts
from capture_analysis.facts.lanes import LaneArray, ends_of
from capture_analysis.metrics.transfer_limits import LEAST_DELTA_NS, NO_SCALE_SEEN, NO_TIME
from capture_analysis.one_capture.from_one import FromOne, Values
from capture_analysis.one_capture.tally import Tally
from capture_analysis.tracking import Kind

RECOVERY, RECEIVER, SENDER = range(3)
CAUSES = 3
_LATER = 1.1
NOT_FAR = "captured near the data's sender, or at an unknown place"

AFAR_RECOVERY = Definition(
    "afar_recovery", "1", "share of time that data were missing below those seen", most=1
)
AFAR_RECEIVE_WINDOW = Definition(
    "afar_receive_window",
    "1",
    "share of time that the announced window was full, by the time that ACKs take to the sender",
    most=1,
)
AFAR_SENDER = Definition(
    "afar_sender",
    "1",
    "share of time that the sender held back: its congestion window or its application",
    most=1,
)


class LimitsFromAfar(FromOne):
    """What each direction waited for, seen from beyond its sender."""

    title = "What limits the transfer, from afar"
    vantage = "beyond the data's sender"
    per_direction: ClassVar[Sequence[Definition]] = (
        AFAR_RECOVERY,
        AFAR_RECEIVE_WINDOW,
        AFAR_SENDER,
    )

    def __init__(self) -> None:
        self._ns = LaneArray(np.add, 0, CAUSES)
        # Of each direction: the last event's time, the highest byte sent, acknowledged, allowed,
        # and the byte up to which losses are repaired.
        self._time = LaneArray(np.maximum, -1)
        self._sent, self._acked, self._edge = (LaneArray(np.maximum, -1) for _ in range(3))
        self._point = LaneArray(np.maximum, -1)
        # ACKs that have not reached the sender: direction, time there, number, edge; (4, n).
        self._coming = np.zeros((4, 0), dtype=np.int64)

    @override
    def add(self, block: Block) -> None:
        far = block.facts.tap_at > NEAR
        if not far.any():
            return
        data, acks = (_Rows(view, far) for view in (block.data, block.acks))
        self._take(data, acks, block.facts)

    def _take(self, data: "_Rows", acks: "_Rows", facts: Facts) -> None:
        loop_ns = np.nan_to_num(facts.tap_at * facts.round_trip_ns)
        later_ns = (_LATER * loop_ns + LEAST_DELTA_NS).astype(np.int64)
        shift = np.maximum(facts.window_shift, 0)
        number, time_ns = acks["ack_bytes"], acks["time_ns"] + later_ns[acks.direction]
        coming = np.stack(
            (acks.direction, time_ns, number, number + (acks["window"] << shift[acks.direction]))
        )[:, number >= 0]
        coming = np.concatenate((self._coming, coming), axis=1)
        until_ns = np.full(len(facts), -1)
        time_ns = data["time_ns"]
        starts = np.flatnonzero(np.diff(data.direction, prepend=-1))
        if len(starts):
            until_ns[data.direction[starts]] = np.maximum.reduceat(time_ns, starts)
        here = coming[1] <= until_ns[coming[0]]
        self._coming, coming = coming[:, ~here], coming[:, here]
        if not len(time_ns):
            return
        start, kind = data["seq_bytes"], data["kind"]
        again = (kind == Kind.RETRANSMISSION) | (kind == Kind.LATE_DATA)
        self._count(
            np.concatenate((coming[0], data.direction)),
            np.concatenate((coming[1], time_ns)),
            sent=_behind(coming[0], start + data["payload_bytes"]),
            start=_behind(coming[0], start),
            again=_behind(coming[0], again.astype(np.int64)),
            acked=_before(coming[2], start),
            edge=_before(coming[3], start),
            facts=facts,
        )

    def _count(
        self,
        direction: IntArray,
        time_ns: IntArray,
        *,
        sent: IntArray,
        start: IntArray,
        again: IntArray,
        acked: IntArray,
        edge: IntArray,
        facts: Facts,
    ) -> None:
        """Count the time before each event by cause; columns of shape (n,), -1: not of its kind."""
        order = _by_direction_and_time(direction, time_ns)  # of equal times ACKs first
        direction, time_ns, sent, start, again, acked, edge = (
            each[order] for each in (direction, time_ns, sent, start, again, acked, edge)
        )
        starts = np.flatnonzero(np.diff(direction, prepend=-1))
        directions, ends = direction[starts], ends_of(starts, len(direction))
        highest = _Highest(starts, directions, ends)
        before_ns = self._before(self._time, highest, time_ns)
        sent_before, sent = highest.of(self._sent, sent)
        acked_before, _ = highest.of(self._acked, acked)
        edge_before, _ = highest.of(self._edge, edge)
        opens = (sent_before >= 0) & (start > sent_before)
        repaired, _ = highest.of(self._point, np.where((again > 0) | opens, sent, -1))
        waited_ns = np.where(before_ns >= 0, np.maximum(time_ns - before_ns, 0), 0)
        waited_ns *= sent_before >= 0
        scaled = facts.window_shift[direction] >= 0
        full = (
            scaled
            & (edge_before >= 0)
            & (sent_before + facts.segment_bytes[direction] > edge_before)
        )
        cause = np.full(len(direction), SENDER)
        cause[full] = RECEIVER
        cause[acked_before < repaired] = RECOVERY
        shares = [np.add.reduceat(waited_ns * (cause == each), starts) for each in range(CAUSES)]
        self._ns.add(directions, np.stack(shares, axis=1))

    @staticmethod
    def _before(carried: LaneArray, highest: "_Highest", time_ns: IntArray) -> IntArray:
        before: IntArray = np.concatenate(([-1], time_ns[:-1]))
        before[highest.starts] = carried.at(highest.directions)
        carried.add(highest.directions, time_ns[highest.ends])
        return before

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


class _Rows:
    """The packets of a view that belong to some directions."""

    def __init__(self, view: View, which: BoolArray) -> None:
        self._view, self._rows = view, np.flatnonzero(view.spread(which))
        self.direction = view.direction[self._rows]

    def __getitem__(self, column: str) -> IntArray:
        """Return a column of the view, (n,)."""
        return self._view[column][self._rows]


class _Highest:
    """Running maxima of events that are sorted by direction."""

    def __init__(self, starts: IntArray, directions: IntArray, ends: IntArray) -> None:
        self.starts, self.directions, self.ends = starts, directions, ends
        # Directions are kept apart by an offset that no number of bytes reaches.
        self._offset = np.repeat(np.arange(len(directions)) << 45, ends - starts + 1)

    def of(self, carried: LaneArray, values: IntArray) -> tuple[IntArray, IntArray]:
        """Return the highest value before each event, and with it; -1 if there is none."""
        values, before = values.copy(), carried.at(self.directions)
        values[self.starts] = np.maximum(values[self.starts], before)
        highest = np.maximum.accumulate(np.clip(values, -1, 1 << 44) + self._offset) - self._offset
        carried.add(self.directions, highest[self.ends])
        earlier: IntArray = np.concatenate(([-1], highest[:-1]))
        earlier[self.starts] = before
        return earlier, highest


def _by_direction_and_time(direction: IntArray, time_ns: IntArray) -> IntArray:
    """Sort events, which are few sorted sequences, by direction and time; equal ones stay in order.

    One key of both makes that a merge of the sequences.
    """
    since_ns = time_ns - time_ns.min()
    span_ns = int(since_ns.max()) + 1
    if span_ns * (int(direction.max()) + 1) >= 1 << 63:
        return np.lexsort((time_ns, direction))
    return np.argsort(direction * span_ns + since_ns, kind="stable")


def _behind(first: IntArray, column: IntArray) -> IntArray:
    """Put -1 for each of `first` before a column."""
    return np.concatenate((np.full(len(first), -1), column))


def _before(column: IntArray, last: IntArray) -> IntArray:
    """Put -1 for each of `last` behind a column."""
    return np.concatenate((column, np.full(len(last), -1)))
