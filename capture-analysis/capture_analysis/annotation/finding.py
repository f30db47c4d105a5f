"""Find packets that deserve a note, block by block; the result does not depend on block ends."""

import numpy as np

from capture_analysis.ack_compression import BUNCH_SERVICE_TIMES
from capture_analysis.annotation.notes import LATE, SOME_WINDOW, Note, Notebook, Places
from capture_analysis.columns import IntArray
from capture_analysis.facts.directions import Block, View
from capture_analysis.facts.facts import NEAR
from capture_analysis.facts.running_totals import Previous, starts_of
from capture_analysis.metrics.ack_bunches import BUNCH_ACKS
from capture_analysis.streaks import StreakFinder, Streaks
from capture_analysis.tracking import Kind, Repair
from capture_analysis.waiting_times import CONGESTION, WaitingTimes

# Multiples of the shortest round trip: a queue stands from the first on, and is empty below the
# second.
_QUEUE, _NO_QUEUE = 1.2, 1.1
# Time without data counts as idle from this share of the round trip on.
_IDLE, _LEAST_IDLE_NS = 0.5, 1_000_000


class Finder:
    """Find notes on the packets of a capture."""

    def __init__(self, notes: Notebook) -> None:
        self._finders = (Bunches(notes), Waiting(notes), Again(notes), Queues(notes))

    def add(self, block: Block) -> None:
        """Take the next packets."""
        for each in self._finders:
            each.add(block)

    def finish(self) -> None:
        """Take bunches that are open at the capture's end."""
        self._finders[0].finish()


class Bunches:
    """Finds bunches of ACKs, and the data packets right before them."""

    def __init__(self, notes: Notebook) -> None:
        self._notes, self._before = notes, Previous()
        self._streaks = StreakFinder(3, BUNCH_ACKS)
        self._ahead = Ahead(), Ahead()

    def add(self, block: Block) -> None:
        """Take the next packets."""
        acks, leads = block.acks, ~block.acks_back_to_back
        ahead = np.zeros(len(block.direction), dtype=np.int64)
        origin = block.facts.origin[block.direction] ^ block.is_ack
        for end, each in enumerate(self._ahead):
            rows = np.flatnonzero(origin == end)
            ahead[rows] = each.counts(block, rows)
        frame = acks["frame"]
        before = self._before.take_previous(acks.directions, acks.starts, frame)
        values = frame * leads, ahead[acks.rows] * leads, (frame - before) * ~leads
        self._note(self._streaks.add(acks.direction, ~leads, acks["time_ns"], values))

    def finish(self) -> None:
        """Take the bunches that were open at the end."""
        self._note(self._streaks.finish())

    def _note(self, bunches: Streaks) -> None:
        direction, rows, first_ns, _, (frame, ahead, further) = vars(bunches).values()
        places = Places(direction, frame, frame + further, first_ns)
        self._notes.add(Note.BUNCH, places, rows, ahead)


class Ahead:
    """Counts the data packets back to back right before each packet from one end of the path.

    A pure ACK or a longer gap restarts the count.
    """

    def __init__(self) -> None:
        self._data, self._last_ns = 0, -1

    def counts(self, block: Block, rows: IntArray) -> IntArray:
        """Return the counts for some rows of a block, all from this end; shape (k,)."""
        if not len(rows):
            return rows
        is_ack, direction = block.is_ack[rows], block.direction[rows]
        time_ns = block.packets.time_ns[rows]
        gap_ns = np.diff(time_ns, prepend=self._last_ns)
        facts = block.facts
        per_byte = np.where(
            is_ack, facts.ack_ns_per_byte[direction], facts.data_ns_per_byte[direction]
        )
        longest_ns = BUNCH_SERVICE_TIMES * per_byte * block.packets.frame_bytes[rows]
        is_data = block.is_data[rows].astype(np.int64)
        before = self._data + np.cumsum(is_data) - is_data
        begins = ~((gap_ns >= 0) & (gap_ns <= longest_ns))
        begins[1:] |= is_ack[:-1]
        ahead: IntArray = before - np.maximum.accumulate(np.where(begins, before, 0))
        self._data = 0 if is_ack[-1] else int(ahead[-1] + is_data[-1])
        self._last_ns = int(time_ns[-1])
        return ahead


class Waiting:
    """Finds times without data of at least _IDLE round trips, with their main cause."""

    def __init__(self, notes: Notebook) -> None:
        self._notes, self._times, self._sent = notes, WaitingTimes(), Previous()

    def add(self, block: Block) -> None:
        """Take the next packets."""
        if not (block.facts.tap_at <= NEAR).any():
            return
        idle_ns, cause = self._times.add_waits(block)
        facts, data = block.facts, View(block, np.flatnonzero(idle_ns >= 0))
        idle_ns, cause, direction = idle_ns[data.rows], cause[data.rows], data.direction
        unknown = (cause == CONGESTION) & (facts.window_shift[direction] < 0)
        cause[unknown] = SOME_WINDOW
        # Without a round trip the minimum is NaN, and no time is idle.
        least_ns = np.maximum(_IDLE * facts.round_trip_ns, _LEAST_IDLE_NS)[direction]
        idle = np.flatnonzero(idle_ns >= least_ns)
        frame, time_ns = data["frame"], data["time_ns"]
        sent = self._sent.take_previous(data.directions, data.starts, frame)
        places = Places(direction[idle], frame[idle], sent[idle], time_ns[idle])
        self._notes.add(Note.IDLE, places, idle_ns[idle], cause[idle])


class Again:
    """Finds data that was sent before or came late, with the reason for sending it."""

    def __init__(self, notes: Notebook) -> None:
        self._notes = notes

    def add(self, block: Block) -> None:
        """Take the next packets."""
        repair = block.tracked.repair
        rows = np.flatnonzero((repair > 0) | (block.tracked.kind == Kind.LATE_DATA))
        near = block.facts.tap_at[block.direction[rows]] <= NEAR
        why = np.where(near, repair[rows], Repair.NONE)
        why[repair[rows] == Repair.NONE] = LATE
        frame = block.packets.frame[rows]
        direction = block.direction[rows].astype(np.int64)
        places = Places(direction, frame, frame, block.packets.time_ns[rows])
        self._notes.add(Note.AGAIN, places, why, 0)


class Queues:
    """Finds ACKs whose round trips show that a queue starts, or that it is empty again.

    An ACK for fewer segments than usual may have been delayed by its receiver, and is left out.
    """

    def __init__(self, notes: Notebook) -> None:
        self._notes, self._there = notes, Previous(0)

    def add(self, block: Block) -> None:
        """Take the next packets."""
        acks, facts = block.acks, block.facts
        usual = np.round(facts.segments_per_ack) * facts.segment_bytes
        seen = (acks["rtt_ns"] >= 0) & (acks["acked_bytes"] >= acks.spread(usual))
        seen &= acks.spread(facts.tap_at) <= NEAR
        shortest_ns = acks.spread(facts.round_trip_ns)
        above = acks["rtt_ns"] > _QUEUE * shortest_ns
        rows = np.flatnonzero(seen & (above | (acks["rtt_ns"] < _NO_QUEUE * shortest_ns)))
        direction, there = acks.direction[rows], above[rows].astype(np.int64)
        starts = np.flatnonzero(starts_of(direction))
        before = self._there.take_previous(direction[starts], starts, there)
        for note, value in ((Note.QUEUE, 1), (Note.NO_QUEUE, 0)):
            turns = rows[(there == value) & (before != value)]
            rtt_ns, least_ns = acks["rtt_ns"][turns], shortest_ns[turns].astype(np.int64)
            frame, time_ns = acks["frame"][turns], acks["time_ns"][turns]
            places = Places(acks.direction[turns], frame, frame, time_ns)
            self._notes.add(note, places, rtt_ns, least_ns)
