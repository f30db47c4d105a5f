"""Blocks of packets, in the orders in which measures need them.

A direction (glossary) is the data that one half of a connection sends and the pure ACKs that
acknowledge it; its number is 2 * flow + half of the data. Nearly every measure is per direction.
"""

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from capture_analysis.ack_compression import BUNCH_SERVICE_TIMES, COMPRESSED_BELOW
from capture_analysis.columns import BoolArray, IntArray, Mark, Packets
from capture_analysis.facts.facts import Facts, FloatArray, Number
from capture_analysis.facts.native_block import NativeBlock
from capture_analysis.facts.running_totals import Previous
from capture_analysis.row_order import by_lane
from capture_analysis.tracking import Kind, Tracked

_TRACKED = frozenset(Tracked.__dataclass_fields__)


class View:
    """Some packets of a block, by direction, then in order of capture.

    Args:
        block: all packets.
        captured: shape (n,), the rows of the packets to view, ascending.

    Attributes:
        rows: shape (n,), rows of the packets in the block.
        places: shape (n,), place of each packet in this view, in the order of capture.
        directions: shape (k,), the directions with packets, ascending.
        starts, ends: shape (k,), the first and the last row of each direction in this view.
        counts: shape (k,), packets of each direction.
    """

    def __init__(self, block: "Block", captured: IntArray) -> None:
        # The block is not kept: it refers to this view, and only the cycle collector would free
        # both.
        self._packets, self._tracked = block.packets, block.tracked
        self._columns: dict[str, IntArray] = {}
        order = by_lane(block.direction, captured)
        self.rows, self.places = order.rows, order.places
        self.directions, self.counts = order.lanes, order.counts
        self.ends = np.cumsum(self.counts) - 1
        self.starts = self.ends - self.counts + 1

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, column: str) -> IntArray:
        """Return a column of Packets or Tracked, shape (n,), int64."""
        if column not in self._columns:
            source = self._tracked if column in _TRACKED else self._packets
            taken: IntArray = getattr(source, column).take(self.rows)
            self._columns[column] = taken.astype(np.int64, copy=False)
        return self._columns[column]

    @cached_property
    def direction(self) -> IntArray:
        """Shape (n,): the direction of each packet."""
        return np.repeat(self.directions, self.counts)

    def spread(self, per_direction: NDArray[Number]) -> NDArray[Number]:
        """Assign to each packet, shape (n,), the value of its direction."""
        return np.repeat(per_direction[self.directions], self.counts)

    def reduce(self, ufunc: np.ufunc, values: IntArray | BoolArray) -> IntArray:
        """Combine a column of n values for each direction, shape (k,)."""
        if not len(self.rows):
            return np.zeros(0, dtype=np.int64)
        return np.asarray(ufunc.reduceat(values, self.starts, dtype=np.int64))

    def sum(self, values: IntArray | BoolArray) -> IntArray:
        """Sum a column of n values for each direction, shape (k,)."""
        return self.reduce(np.add, values)


class Block:
    """Packets with the tracker's columns.

    Orders and shared columns are made on first use.

    Args:
        packets: the columns as the reader wrote them.
        tracked: the tracker's columns for these packets.
        facts: facts of each direction, for all connections in the block.
        stamps: the time stamps of earlier ACKs.
    """

    def __init__(
        self, packets: Packets, tracked: Tracked, facts: Facts, stamps: Previous | None = None
    ) -> None:
        self.packets, self.tracked, self.facts = packets, tracked, facts
        self._stamps = Previous() if stamps is None else stamps

    def with_facts(self, facts: Facts) -> "Block":
        """Return the same packets with other facts; orders and columns in them are shared."""
        other = Block(self.packets, self.tracked, facts, self._stamps)
        shared = ("is_ack", "is_data", "direction", "acks", "data")
        vars(other).update({name: getattr(self, name) for name in shared})
        return other

    @cached_property
    def is_ack(self) -> BoolArray:
        """Shape (n,): True for a pure ACK of any kind."""
        return _mark_kinds(self.tracked.kind, Kind.ACK, Kind.OLD_ACK)

    @cached_property
    def is_data(self) -> BoolArray:
        """Shape (n,): True for a packet with payload.

        The payload may be new, sent again, late or a probe.
        """
        return _mark_kinds(self.tracked.kind, Kind.NEW_DATA, Kind.PROBE)

    @cached_property
    def direction(self) -> NDArray[np.uint32]:
        """Shape (n,): the direction of each packet."""
        direction = self.packets.flow.astype(np.uint32)
        direction <<= 1
        direction |= self.packets.half ^ self.is_ack
        return direction

    @cached_property
    def native(self) -> NativeBlock:
        """The columns as C reads them."""
        return NativeBlock(self.packets, self.tracked, self.facts)

    @cached_property
    def all(self) -> View:
        """Every packet."""
        return View(self, np.arange(len(self.direction)))

    @cached_property
    def acks(self) -> View:
        """The pure ACKs."""
        return View(self, self.is_ack.nonzero()[0])

    @cached_property
    def data(self) -> View:
        """The packets that carry payload."""
        return View(self, self.is_data.nonzero()[0])

    def acknowledged_direction(self, rows: IntArray) -> IntArray:
        """Return the direction of data that each packet acknowledges, (k,)."""
        flow = self.packets.flow[rows].astype(np.int64)
        return (flow << 1 | self.packets.half[rows]) ^ 1

    @cached_property
    def acked_ns(self) -> FloatArray:
        """Shape (acks,): transmission time of the acknowledged bytes on the data's bottleneck."""
        return np.asarray(self.acks["acked_bytes"] * self.acks.spread(self.facts.acked_ns_per_byte))

    @cached_property
    def acks_faster(self) -> BoolArray:
        """Shape (acks,): True if an ACK acknowledges faster than its data can have arrived."""
        gap = self.acks["gap_ns"]
        faster: BoolArray = (gap >= 0) & (gap < COMPRESSED_BELOW * self.acked_ns)
        return faster

    @cached_property
    def sent_gap_ns(self) -> IntArray:
        """Shape (acks,): gaps of ACKs when sent, by their time stamps, ns; -1 if unknown."""
        acks = self.acks
        stamped: BoolArray = (acks["marks"] & Mark.TIMESTAMPS) != 0
        stamp = acks["ts_value"] * stamped - ~stamped  # -1: no time stamp
        before = self._stamps.take_previous(acks.directions, acks.starts, stamp)
        ticks = (stamp - before).astype(np.int32)  # time stamps wrap modulo 2^32
        known = stamped & (before >= 0) & (ticks >= 0)
        tick_ns = acks.spread(self.facts.tick_whole_ns)
        known &= tick_ns > 0
        return np.asarray(ticks * tick_ns * known - ~known)

    @cached_property
    def back_to_back_ns(self) -> FloatArray:
        """Shape (acks,): the longest gap before an ACK that counts as back to back.

        The gap is BUNCH_SERVICE_TIMES times the ACK's transmission time; NaN if no rate is known.
        """
        longest = self.acks.spread(BUNCH_SERVICE_TIMES * self.facts.ack_ns_per_byte)
        return np.asarray(longest * self.acks["frame_bytes"])

    @cached_property
    def acks_back_to_back(self) -> BoolArray:
        """Shape (acks,): True if an ACK came back to back with its direction's previous ACK."""
        gap_ns = self.acks["gap_ns"]
        close: BoolArray = (gap_ns >= 0) & (gap_ns <= self.back_to_back_ns)
        return close


def _mark_kinds(kind: IntArray, first: Kind, last: Kind) -> BoolArray:
    """Mark the kinds within a range.

    Kinds are u1, so kinds below the range wrap around.
    """
    return np.asarray((kind - np.uint8(first)) <= np.uint8(last - first))
