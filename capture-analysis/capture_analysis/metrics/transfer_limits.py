"""Limits: the causes for which a transfer waits, by share of its time.

The time from a direction's first packet to its last is divided at each of its packets, data and
pure ACKs. Each part belongs to the first cause that holds:

    loss recovery      the next data is sent again, or data sent before the last
                       retransmission is not acknowledged yet
    receive window     a full segment more would exceed the window that the receiver announced
    application        nothing is outstanding; or the next data comes more than delta after the
                       last ACK and the last data; or there is no next data
    send buffer        the last data had PSH, and three ACKs or more came since, which released
                       nothing: the application had written no more
    congestion window  otherwise: data waits for an ACK
    ACK compression    the part of a wait for either window by which the ACK's gap grew since both
                       ACKs were sent, minus a tick of their time stamps: a queue on the ACKs'
                       path held the ACK, and the ACKs behind it leave that queue compressed

delta = a tenth of the round trip, at least 1 ms. Self-check: the shares sum to 1. `timeouts` counts
retransmissions that follow 0.2 s of silence. After Zhang, Breslau, Paxson, Shenker 2002, who have
no ACK compression. A sender that paces seems limited by its application if its gaps exceed delta.
ACKs that a queue held and ACKs that their medium delayed look alike. Waits that the tick hides stay
in the windows' shares; without time stamps all of them do.

Vantage: near the data's sender, where data follows the ACK that released it. The window's scale
needs the handshake.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from typing_extensions import override

from capture_analysis.columns import BoolArray, IntArray
from capture_analysis.definition import Definition
from capture_analysis.facts.blocks import Block, View
from capture_analysis.facts.facts import NEAR, Facts
from capture_analysis.facts.lanes import LaneArray, Previous
from capture_analysis.one_capture.evidence import NO_PLACE
from capture_analysis.one_capture.from_one import FromOne, Values
from capture_analysis.one_capture.tally import Tally
from capture_analysis.tracking import Kind

APPLICATION, RECOVERY, RECEIVER, CONGESTION, ACKS, BUFFER = range(6)
CAUSES = 6
_SOURCE = "Zhang, Breslau, Paxson, Shenker 2002"
_DELTA, LEAST_DELTA_NS = 0.1, 1_000_000
_TIMEOUT_NS = 200_000_000
_PSH = 8
# An ACK releases data at once, and a delayed ACK releases data for two segments.
_IDLE_ACKS = 3
NOT_NEAR = "not captured near the data's sender, where the ACKs that release data are seen"
NO_SCALE_SEEN = "no handshake in the capture: the scale of windows is unknown"
NO_TIME = "fewer than two packets"
NO_STAMPS = "no time stamps in the ACKs: the time of sending is unknown"

LIMITED_APPLICATION = Definition(
    "limited_application",
    "1",
    "share of time in which the sender had nothing to send",
    _SOURCE,
    most=1,
)
LIMITED_RECOVERY = Definition(
    "limited_recovery", "1", "share of time in which losses were being repaired", _SOURCE, most=1
)
LIMITED_RECEIVE_WINDOW = Definition(
    "limited_receive_window",
    "1",
    "share of time in which the announced window was full",
    _SOURCE,
    most=1,
)
LIMITED_CONGESTION_WINDOW = Definition(
    "limited_congestion_window",
    "1",
    "share of time in which data waited for ACKs, though the announced window was open",
    _SOURCE,
    most=1,
)
LIMITED_SEND_BUFFER = Definition(
    "limited_send_buffer",
    "1",
    "share of time in which ACKs released nothing, because the sender's buffer held nothing unsent",
    most=1,
)
LIMITED_ACK_COMPRESSION = Definition(
    "limited_ack_compression",
    "1",
    "share of time in which data waited for ACKs that were held on their path",
    most=1,
)
TIMEOUTS = Definition("timeouts", "1", "retransmissions after 0.2 s without a packet")


@dataclass(frozen=True)
class Waits:
    """Columns of shape (n,): the time before each packet of a view, and its cause.

    Attributes:
        view: data packets and pure ACKs.
        ns: time since the direction's previous packet.
        held_ns: the part of `ns` for which an ACK was held on its path.
        cause: cause of the rest; -1 if the next data decide it. RECEIVER becomes RECOVERY if the
            next data are sent again.
        by_next: cause that a data packet gives to the time before it.
        is_data: True if the packet carries payload.
        again: True if the payload was sent again or came late.
    """

    view: View
    ns: IntArray
    held_ns: IntArray
    cause: IntArray
    by_next: IntArray
    is_data: BoolArray
    again: BoolArray


def acks_for_window(cause: IntArray) -> IntArray:
    """Replace waits for a window by waits for ACKs that were held on their path."""
    return np.where(cause == CONGESTION, ACKS, cause)


class TransferLimits(FromOne):
    """The causes for which each direction waited."""

    title = "What limits the transfer"
    vantage = "near the data's sender"
    per_direction: ClassVar[Sequence[Definition]] = (
        LIMITED_APPLICATION,
        LIMITED_RECOVERY,
        LIMITED_RECEIVE_WINDOW,
        LIMITED_CONGESTION_WINDOW,
        LIMITED_ACK_COMPRESSION,
        LIMITED_SEND_BUFFER,
        TIMEOUTS,
    )

    def __init__(self) -> None:
        # Time by cause; then times whose cause the next data decides, without and with held ACKs.
        self._ns = LaneArray(np.add, 0, CAUSES)
        self._open, self._open_held = LaneArray(np.add, 0), LaneArray(np.add, 0)
        # Time with a full window, which counts as recovery if the next data are sent again.
        self._open_full = LaneArray(np.add, 0)
        self._timeouts = LaneArray(np.add, 0)
        self._time, self._flight, self._window = Previous(), Previous(0), Previous(-1)
        self._idle_acks = LaneArray(np.maximum, -1)
        self._sent, self._acked, self._again = (LaneArray(np.maximum, -1) for _ in range(3))

    @override
    def add(self, block: Block) -> None:
        waits = self.waits(block)
        if waits is None:
            return
        view, cause, by_next = waits.view, waits.cause, waits.by_next
        timeouts = waits.again & (waits.ns >= _TIMEOUT_NS)
        self._timeouts.add(view.directions, view.sum(timeouts))
        rest_ns, held_ns = waits.ns - waits.held_ns, waits.held_ns
        is_data = waits.is_data
        decided = self._by_next(view, rest_ns * (cause < 0), is_data, by_next, self._open)
        by_next = acks_for_window(by_next)
        decided += self._by_next(view, held_ns * (cause < 0), is_data, by_next, self._open_held)
        full = np.where(waits.again, RECOVERY, RECEIVER)
        decided += self._by_next(
            view, rest_ns * (cause == RECEIVER), is_data, full, self._open_full
        )
        for each in (APPLICATION, RECOVERY):
            decided[:, each] += view.sum(rest_ns * (cause == each))
        decided[:, ACKS] += view.sum(held_ns * (cause == RECEIVER))
        self._ns.add(view.directions, decided)

    def waits(self, block: Block) -> Waits | None:
        """Find the time before each data packet and pure ACK, and its cause.

        Returns: the times of directions that were captured near their sender; None without packets.
        """
        near = block.facts.tap_at <= NEAR
        if not near.any():
            return None
        kept = near.take(block.direction) & (block.is_ack | block.is_data)
        view = View(block, np.flatnonzero(kept))
        return self._waits(view, block.facts, _held_ns(block)[view.rows]) if len(view) else None

    def _waits(self, view: View, facts: Facts, held_ns: IntArray) -> Waits:
        time_ns, kind = view["time_ns"], view["kind"]
        before_ns = self._time.of(view.directions, view.starts, time_ns)
        flight = self._flight.of(view.directions, view.starts, view["in_flight_bytes"])
        # Time before the first data does not count.
        wait_ns = np.where(before_ns >= 0, np.maximum(time_ns - before_ns, 0), 0)
        is_data = (kind >= Kind.NEW_DATA) & (kind <= Kind.PROBE)
        again = (kind == Kind.RETRANSMISSION) | (kind == Kind.LATE_DATA)
        window = self._windows(view, is_data)
        shift = view.spread(facts.window_shift)
        room = window << np.maximum(shift, 0)
        full = (shift >= 0) & (window >= 0)
        full &= flight + view.spread(facts.segment_bytes) > room
        cause = np.full(len(view), -1)
        cause[flight == 0] = APPLICATION
        cause[full] = RECEIVER
        cause[self._recovering(view, is_data, again)] = RECOVERY
        delta_ns = np.maximum(np.nan_to_num(_DELTA * facts.round_trip_ns), LEAST_DELTA_NS)
        prompt = wait_ns <= view.spread(delta_ns)
        sender = np.where(self._ran_empty(view, is_data), BUFFER, CONGESTION)
        by_next = np.where(again, RECOVERY, np.where(prompt, sender, APPLICATION))
        held_ns = np.minimum(held_ns, wait_ns) * ((cause < 0) | (cause == RECEIVER))
        return Waits(view, wait_ns, held_ns, cause, by_next, is_data, again)

    def _windows(self, view: View, is_data: BoolArray) -> IntArray:
        """Return the window that the ACK before each packet announced; -1 if none was seen."""
        rows = np.arange(len(view))
        last = np.maximum.accumulate(np.where(is_data, -1, rows))
        first = np.repeat(view.starts, view.counts)
        inside = last >= first
        latest = np.where(inside, view["window"][np.maximum(last, 0)], -1)
        carried = self._window.of(view.directions, view.starts, latest)
        # If a lane has had no ACK in this block, the window is the one from before the block.
        known = np.repeat(carried[view.starts], view.counts)
        before = np.concatenate(([-1], latest[:-1]))
        before[view.starts] = known[view.starts]
        found: IntArray = np.where(before >= 0, before, known)
        self._window.of(view.directions, view.starts, np.where(inside, latest, known))
        return found

    def _ran_empty(self, view: View, is_data: BoolArray) -> BoolArray:
        """Mark packets before which ACKs released nothing, after data with PSH."""
        rows = np.arange(len(view))
        acks = np.cumsum(~is_data & (view["acked_bytes"] > 0))
        last = np.maximum.accumulate(np.where(is_data, rows, 0))
        first = np.repeat(view.starts, view.counts)
        # Number of ACKs since the last data, which may be in an earlier block; -1 if that data had
        # no PSH.
        carried = np.repeat(self._idle_acks.at(view.directions), view.counts)
        begun = np.concatenate(([0], acks))[first]
        here = np.where(view["flags"][last] & _PSH, acks - acks[last], -1)
        there = np.where(carried >= 0, carried + acks - begun, -1)
        since = np.where(is_data[last] & (last >= first), here, there)
        before = np.concatenate(([-1], since[:-1]))
        before[view.starts] = carried[view.starts]
        self._idle_acks.replace(view.directions, since[view.ends])
        found: BoolArray = before >= _IDLE_ACKS
        return found

    def _recovering(self, view: View, is_data: BoolArray, again: BoolArray) -> BoolArray:
        """Mark packets sent while data from before a retransmission was outstanding."""
        before = self._acked.at(view.directions) < self._again.at(view.directions)
        sent_end = np.where(is_data, view["seq_bytes"] + view["payload_bytes"], -1)
        sent = self._highest(view, self._sent, sent_end)
        acked = self._highest(view, self._acked, np.where(is_data, -1, view["ack_bytes"]))
        point = self._highest(view, self._again, np.where(again, sent, -1))
        found: BoolArray = np.concatenate(([False], (acked < point)[:-1]))
        found[view.starts] = before
        return found

    def _highest(self, view: View, carried: LaneArray, values: IntArray) -> IntArray:
        """Return the highest value of each direction so far."""
        values = values.copy()
        values[view.starts] = np.maximum(values[view.starts], carried.at(view.directions))
        # An offset keeps directions apart; no number of bytes reaches it.
        offset = np.repeat(np.arange(len(view.directions)) << 45, view.counts)
        highest = np.maximum.accumulate(np.clip(values, -1, 1 << 44) + offset) - offset
        carried.add(view.directions, highest[view.ends])
        return highest

    def _by_next(
        self,
        view: View,
        open_ns: IntArray,
        is_data: BoolArray,
        cause: IntArray,
        undecided: LaneArray,
    ) -> IntArray:
        """Assign to undecided waits the cause of the next data; shape (directions, causes)."""
        total = np.cumsum(open_ns)
        rows = np.flatnonzero(is_data)
        place = np.searchsorted(view.starts, rows, side="right") - 1
        start = total[view.starts[place]] - open_ns[view.starts[place]]
        previous = np.concatenate(([0], total[rows][:-1])) if len(rows) else total[:0]
        first = np.concatenate(([True], np.diff(place) > 0)) if len(rows) else np.zeros(0, bool)
        carried = undecided.at(view.directions[place]) * first
        spent = total[rows] - np.where(first, start, previous) + carried
        found = np.zeros((len(view.directions), CAUSES), dtype=np.int64)
        np.add.at(found, (place, cause[rows]), spent)
        # Waits after a direction's last data in the block are decided by later data.
        left = total[view.ends] - total[view.starts] + open_ns[view.starts]
        used = np.zeros(len(view.directions), dtype=np.int64)
        np.add.at(used, place, spent - carried)
        some = np.zeros(len(view.directions), dtype=np.bool_)
        some[place] = True
        before = undecided.at(view.directions)
        undecided.replace(view.directions, np.where(some, 0, before) + left - used)
        return found

    @override
    def merge(self, other: Self) -> None:
        for name in ("_ns", "_open", "_open_held", "_open_full", "_timeouts"):
            getattr(self, name).merge(getattr(other, name))

    @override
    def of_direction(self, direction: int, tally: Tally, facts: Facts) -> Values:
        if not facts.tap_at[direction] <= NEAR:
            why = NO_PLACE if np.isnan(facts.tap_at[direction]) else NOT_NEAR
            return dict.fromkeys(self.per_direction, why)
        spent = [int(n) for n in self._ns.of(direction)]
        spent[APPLICATION] += int(self._open.of(direction) + self._open_held.of(direction))
        spent[RECEIVER] += int(self._open_full.of(direction))
        if not sum(spent):
            return dict.fromkeys(self.per_direction, NO_TIME)
        shares = [each / sum(spent) for each in spent]
        scaled = facts.window_shift[direction] >= 0
        return {
            LIMITED_APPLICATION: shares[APPLICATION],
            LIMITED_RECOVERY: shares[RECOVERY],
            LIMITED_RECEIVE_WINDOW: shares[RECEIVER] if scaled else NO_SCALE_SEEN,
            LIMITED_CONGESTION_WINDOW: shares[CONGESTION] if scaled else NO_SCALE_SEEN,
            LIMITED_ACK_COMPRESSION: (
                NO_STAMPS if np.isnan(facts.tick_ns[direction]) else shares[ACKS]
            ),
            LIMITED_SEND_BUFFER: shares[BUFFER] if scaled else NO_SCALE_SEEN,
            TIMEOUTS: int(self._timeouts.of(direction)),
        }


def _held_ns(block: Block) -> IntArray:
    """Compute by how much the gap of each ACK grew after it was sent, ns.

    It is 0 for other packets and if unknown; a lower bound, because a tick is subtracted.
    """
    acks, held_ns = block.acks, np.zeros(len(block.direction), dtype=np.int64)
    sent_ns, gap_ns = block.sent_gap_ns, acks["gap_ns"]
    longer_ns = gap_ns - sent_ns - acks.spread(block.facts.tick_whole_ns)
    held_ns[acks.rows] = np.where((sent_ns >= 0) & (gap_ns >= 0), np.maximum(longer_ns, 0), 0)
    return held_ns
