"""Counts for every direction that several metrics share."""

from typing import TYPE_CHECKING

import numpy as np

from capture_analysis.columns import FLAG_SYN, IntArray
from capture_analysis.facts.facts import NEARLY_FULL
from capture_analysis.facts.lanes import LaneArray, occurrences
from capture_analysis.tracking import Kind

if TYPE_CHECKING:
    from capture_analysis.facts.blocks import Block

# A gap between data of at least this length, ns, with nothing outstanding is an application pause.
PAUSE_NS = 1_000_000_000
NEVER = np.iinfo(np.int64).max
KINDS = len(Kind)


class Tally:
    """Sums over the packets of each direction (see blocks.py).

    Attributes:
        kinds: packets by direction * KINDS + kind.
        payload, new_payload: bytes of data.
        data_frame_bytes, ack_frame_bytes: frames as captured, of data and of pure ACKs.
        acked: payload that pure ACKs were the first to acknowledge.
        first_ns, last_ns: time of the first and the last data; NEVER and -1 if none.
        first_ack_ns, last_ack_ns: time of the first and the last pure ACK; NEVER and -1 if none.
        full_segments: packets with nearly the largest payload of their direction.
        spaced_acks: pure ACKs of new data that have one before them.
        first_new: new payload of the first data packet.
        merged: packets with more payload than a segment can have.
        syns: SYN and SYN-ACK packets.
        unseen: payload that was acknowledged and not seen, and ACKs that were the first to do so.
        pause_ns: sum of the application's pauses, see PAUSE_NS.
    """

    def __init__(self) -> None:
        self.kinds = LaneArray(np.add, 0)
        self.payload = LaneArray(np.add, 0)
        self.new_payload = LaneArray(np.add, 0)
        self.data_frame_bytes = LaneArray(np.add, 0)
        self.ack_frame_bytes = LaneArray(np.add, 0)
        self.acked = LaneArray(np.add, 0)
        self.full_segments, self.spaced_acks = LaneArray(np.add, 0), LaneArray(np.add, 0)
        self.first_new = LaneArray(np.add, 0)
        self.merged, self.syns = LaneArray(np.add, 0), LaneArray(np.add, 0)
        self.unseen = LaneArray(np.add, 0, 2)
        self.pause_ns = LaneArray(np.add, 0)
        self.first_ns = LaneArray(np.minimum, NEVER)
        self.first_ack_ns = LaneArray(np.minimum, NEVER)
        self.last_ns = LaneArray(np.maximum, -1)
        self.last_ack_ns = LaneArray(np.maximum, -1)

    def add(self, block: "Block") -> None:
        """Take the next packets."""
        self._count_kinds(block)
        syn = (block.packets.flags & FLAG_SYN) != 0
        rows = np.flatnonzero(syn & (block.tracked.kind == Kind.CONTROL))
        self.syns.add_rows(block.direction[rows].astype(np.int64), np.ones_like(rows))
        rows = np.flatnonzero(block.tracked.unseen_bytes)
        unseen = block.tracked.unseen_bytes[rows].astype(np.int64)
        holes = np.stack((unseen, np.ones_like(unseen)), axis=1)
        self.unseen.add_rows(block.acknowledging(rows), holes)
        data, acks = block.data, block.acks
        fresh = self.first_ns.at(data.directions) == NEVER
        self.first_new.add(data.directions[fresh], data["new_bytes"][data.starts[fresh]])
        for name, values in (
            ("payload", data["payload_bytes"]),
            ("new_payload", data["new_bytes"]),
            ("data_frame_bytes", data["frame_bytes"]),
        ):
            getattr(self, name).add(data.directions, data.sum(values))
        full = data["payload_bytes"] >= data.spread(NEARLY_FULL * block.facts.segment_bytes)
        self.full_segments.add(data.directions, data.sum(full))
        if block.facts.merged.any():
            long = data["payload_bytes"] > data.spread(block.facts.longest_bytes)
            self.merged.add(data.directions, data.sum(long))
        paused = data["gap_ns"] >= PAUSE_NS
        rows = np.flatnonzero(paused & (data["in_flight_bytes"] <= data["payload_bytes"]))
        self.pause_ns.add_rows(data.direction[rows], data["gap_ns"][rows])
        self._add_times(block)
        self.ack_frame_bytes.add(acks.directions, acks.sum(acks["frame_bytes"]))
        self.acked.add(acks.directions, acks.sum(acks["acked_bytes"]))
        spaced = (acks["acked_bytes"] > 0) & (acks["gap_ns"] >= 0)
        self.spaced_acks.add(acks.directions, acks.sum(spaced))

    def _count_kinds(self, block: "Block") -> None:
        key = block.direction.astype(np.int64) * KINDS + block.tracked.kind
        key, count = occurrences(key)
        self.kinds.add(key, count)

    def _add_times(self, block: "Block") -> None:
        for view, first, last in (
            (block.data, self.first_ns, self.last_ns),
            (block.acks, self.first_ack_ns, self.last_ack_ns),
        ):
            first.add(view.directions, view.reduce(np.minimum, view["time_ns"]))
            last.add(view.directions, view.reduce(np.maximum, view["time_ns"]))

    def merge(self, other: "Tally") -> None:
        """Add the counts of another tally, which took other connections."""
        for name, mine in vars(self).items():
            mine.merge(getattr(other, name))

    def count(self, direction: int, *kinds: Kind) -> int:
        """Count the packets of some kinds in a direction."""
        return sum(int(self.kinds.of(direction * KINDS + kind)) for kind in kinds)

    def packets(self, direction: int) -> int:
        """Count a direction's packets.

        Data and control packets of one half, pure ACKs of the other.
        """
        return self.count(direction, *Kind)

    def segments(self, direction: int) -> int:
        """Count a direction's packets with payload, probes left out."""
        return self.count(direction, Kind.NEW_DATA, Kind.RETRANSMISSION, Kind.LATE_DATA)

    def acks(self, direction: int) -> int:
        """Count the pure ACKs of a direction's data, of any kind."""
        return self.count(direction, Kind.ACK, Kind.DUPLICATE_ACK, Kind.WINDOW_UPDATE, Kind.OLD_ACK)

    def active_ns(self, direction: int) -> int:
        """Measure from a direction's first data to its last, without pauses.

        0 with one packet.
        """
        span = self.last_ns.of(direction) - self.first_ns.of(direction)
        return max(int(span) - int(self.pause_ns.of(direction)), 0)

    def active_times_ns(self, directions: int) -> IntArray:
        """Measure the times of data, and of their ACKs, without pauses; (2, directions)."""
        rows = np.arange(directions)
        ends = (self.first_ns, self.last_ns), (self.first_ack_ns, self.last_ack_ns)
        spans = np.stack([last.at(rows) - first.at(rows) for first, last in ends])
        return np.maximum(spans - self.pause_ns.at(rows), 0)

    def directions(self) -> IntArray:
        """Return the directions that carry data, ascending."""
        return np.flatnonzero(self.payload.values() > 0)
