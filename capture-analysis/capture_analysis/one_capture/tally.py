"""Counts for every direction that several metrics share."""

from typing import NamedTuple

import numpy as np

from capture_analysis.columns import IntArray
from capture_analysis.facts.directions import Block
from capture_analysis.facts.running_totals import JoinedArrays, LaneArray
from capture_analysis.one_capture import lives
from capture_analysis.tracking import Kind
from capture_analysis.waiting_times import WaitingTimes


class Symptoms(NamedTuple):
    """A direction's numbers, in the order of struct ca_symptoms in clib/symptoms.h."""

    answers: int
    first_ns: int
    answered_ns: int
    longest_ns: int
    asked_ns: int
    keepalives: int
    unheard: int
    unheard_most: int
    largest: int
    largest_end: int
    passed: int
    again_at: int
    repeats: int
    repeats_most: int
    repeated: int
    begun_ns: int
    peak: int
    doubled_ns: int
    lost: int
    high: int
    acked: int
    edge: int
    window: int
    silly: int
    run: int
    run_most: int
    tails: int
    resets: int
    reset_ns: int
    reset_bytes: int
    losses: int
    loss_first_ns: int
    loss_last_ns: int
    loss_first_bytes: int
    loss_last_bytes: int
    bytes: int
    not_capable: int
    ect_1: int
    ect_0: int
    marked: int
    echoes: int
    reduced: int
    offered: int
    counter: int
    told: int
    byte_counters: int
    last_ns: int
    idle_ns: int


# A gap between data of at least this length, ns, with nothing outstanding is an application pause.
PAUSE_NS = 1_000_000_000
NEVER = np.iinfo(np.int64).max
KINDS = len(Kind)

# In the order of struct ca_tally in clib/tally.h.
_SUMS = (
    "kinds",
    "payload",
    "new_payload",
    "data_frame_bytes",
    "ack_frame_bytes",
    "acked",
    "full_segments",
    "spaced_acks",
    "first_new",
    "merged",
    "syns",
    "unseen",
    "pause_ns",
    "first_ns",
    "first_ack_ns",
    "last_ns",
    "last_ack_ns",
    "answer_ns",
    "acked_ns",
    "back_ns",
    "shut",
)
_SHUT = 9  # length of struct ca_shut


class Tally:
    """Sums over the packets of each direction (see directions.py).

    Attributes:
        kinds: packets by kind.
        payload, new_payload: bytes of data.
        data_frame_bytes, ack_frame_bytes: frames as captured, of data and of pure ACKs.
        acked: payload that pure ACKs were the first to acknowledge.
        first_ns, last_ns: time of the first and the last data; NEVER and -1 if none.
        first_ack_ns, last_ack_ns: time of the first and the last pure ACK; NEVER and -1 if none.
        full_segments: packets with nearly the largest payload of their direction.
        spaced_acks: pure ACKs of new data with one before them.
        first_new: new payload of the first data packet.
        merged: packets with more payload than a segment can have.
        syns: SYN and SYN-ACK packets.
        unseen: payload that was acknowledged and not seen, and ACKs that were the first to
            acknowledge such payload.
        pause_ns: sum of the application's pauses, see PAUSE_NS: with nothing outstanding and an
            open window. The half that opened the connection asks: its wait for the answer, and the
            other's time before the answer, are no pauses of the other.
        answer_ns: longest time from the opposite direction's last data to its own; -1 if none.
        back_ns: time of data, and of pure ACKs, before a clock was set back by 10 ms or more;
            first_ns and the like are then those behind that step.
        acked_ns: time of the last packet that was the first to acknowledge data; -1 if none.
        shut: struct ca_shut in clib/tally.h: number of zero windows, their time, and the longest.
        waits: the time of each direction by cause.
        lives: struct ca_life of each connection (connections.py).
    """

    def __init__(self) -> None:
        self.kinds = LaneArray(np.add, 0, KINDS)
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
        self.answer_ns = LaneArray(np.maximum, -1)
        self.acked_ns = LaneArray(np.maximum, -1)
        self.back_ns = LaneArray(np.add, 0, 2)
        self.shut = LaneArray(np.add, 0, _SHUT)
        self._rows = JoinedArrays([getattr(self, name) for name in _SUMS])
        self.waits = WaitingTimes()
        self.lives = LaneArray(np.add, 0, lives.NUMBERS)
        self._symptoms = LaneArray(np.add, 0, len(Symptoms._fields))

    def add(self, block: Block) -> None:
        """Take the next packets; in C (clib/tally.c)."""
        directions = block.native.directions
        rows, lives_at = self._rows.address(directions), self.lives.address(directions // 2)
        block.native.add("ca_tally_add", rows, lives_at)
        self.waits.add(block)
        block.native.add("ca_symptoms_add", self._symptoms.address(directions))

    def symptoms(self, direction: int) -> Symptoms:
        """Return what clib/symptoms.c counted in a direction."""
        return Symptoms(*self._symptoms.value_of(direction).tolist())

    def merge(self, other: "Tally") -> None:
        """Add the counts of another tally, which took other connections."""
        for name, mine in vars(self).items():
            if mine is not self._rows:
                mine.merge(getattr(other, name))

    def count(self, direction: int, *kinds: Kind) -> int:
        """Count the packets of some kinds in a direction."""
        counts = self.kinds.value_of(direction)
        return sum(int(counts[kind]) for kind in kinds)

    def packets(self, direction: int) -> int:
        """Count a direction's packets.

        These are data and control packets of one half, and pure ACKs of the other.
        """
        return self.count(direction, *Kind)

    def segments(self, direction: int) -> int:
        """Count a direction's packets with payload, probes left out."""
        return self.count(direction, Kind.NEW_DATA, Kind.RETRANSMISSION, Kind.LATE_DATA)

    def acks(self, direction: int) -> int:
        """Count the pure ACKs of a direction's data, of any kind."""
        return self.count(direction, Kind.ACK, Kind.DUPLICATE_ACK, Kind.WINDOW_UPDATE, Kind.OLD_ACK)

    def life_ns(self, direction: int) -> int:
        """Return the time from a direction's first data to its last; 0 with one packet."""
        span = self.last_ns.value_of(direction) - self.first_ns.value_of(direction)
        return max(int(span) + int(self.back_ns.value_of(direction)[0]), 0)

    def active_ns(self, direction: int) -> int:
        """Return the time from a direction's first data to its last, without pauses."""
        return max(self.life_ns(direction) - int(self.pause_ns.value_of(direction)), 0)

    def active_times_ns(self, directions: int) -> IntArray:
        """Return the times of data, and of its ACKs, without pauses; (2, directions)."""
        rows = np.arange(directions)
        return np.asarray(np.maximum(self.spans_ns(rows) - self.pause_ns.values_of(rows), 0))

    def spans_ns(self, rows: IntArray) -> IntArray:
        """Return the times from first to last, of data and of ACKs; (2, rows), negative if none."""
        ends = (self.first_ns, self.last_ns), (self.first_ack_ns, self.last_ack_ns)
        spans = np.stack([last.values_of(rows) - first.values_of(rows) for first, last in ends])
        return np.asarray(spans + self.back_ns.values_of(rows).T)

    def directions(self) -> IntArray:
        """Return the directions that carry data, ascending."""
        return np.flatnonzero(self.payload.values() > 0)
