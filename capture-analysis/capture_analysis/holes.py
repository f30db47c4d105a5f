"""Packets that the second tap does not have: lost on the way, or missed by its capture?

If the receiver acknowledges bytes that the second tap has not seen, they did pass it: its capture
missed them. If the bytes are seen there later, they were sent again and the first copy was lost.
What comes first decides; with neither a packet counts as lost. ACKs leave no such trace.
"""

import numpy as np

from capture_analysis.columns import FLAG_ACK, BoolArray, IntArray
from capture_analysis.crossings import ABSENT, CROSSING, Crossings, is_data
from capture_analysis.matching import FOREVER, Rows, joined, take

# More undecided ones are not kept: the oldest count as lost.
UNDECIDED_LIMIT = 1 << 16


class Holes:
    """Data of one way that the second tap lacks, until it is known why."""

    def __init__(self) -> None:
        self._open = np.zeros(0, dtype=CROSSING)

    def add(self, crossings: Crossings, opposite: Crossings) -> tuple[Rows, Rows]:
        """Take what passed next; return the data packets found lost, and found missed.

        Args:
            crossings: of the way that the data go.
            opposite: of the other, with ACKs for them.
        """
        sent = crossings.sent
        new = take(sent, np.flatnonzero((sent["second_ns"] == ABSENT) & is_data(sent)))
        holes = joined((self._open, new))
        if not len(holes):
            return holes, holes
        seen_ns = _first_seen(holes, _concerned(crossings.arrived, holes, turned=False))
        acked_ns = _first_acked(holes, _concerned(opposite.sent, holes, turned=True))
        missed = acked_ns < seen_ns
        decided = missed | (seen_ns < FOREVER)
        decided[: max(int((~decided).sum()) - UNDECIDED_LIMIT, 0)] = True
        self._open = take(holes, np.flatnonzero(~decided))
        return take(holes, np.flatnonzero(decided & ~missed)), take(holes, np.flatnonzero(missed))

    def finish(self) -> Rows:
        """What is undecided at the end: it counts as lost."""
        rest, self._open = self._open, np.zeros(0, dtype=CROSSING)
        return rest


def _direction(rows: Rows, *, turned: bool) -> IntArray:
    return np.asarray(rows["flow"].astype(np.int64) * 2 + (rows["half"] ^ turned))


def _concerned(rows: Rows, holes: Rows, *, turned: bool) -> Rows:
    """Those rows that are of the holes' halves of connections, or of the opposite ones."""
    wanted = np.unique(_direction(holes, turned=False))
    direction = _direction(rows, turned=turned)
    if turned:
        keep = (rows["flags"] & FLAG_ACK != 0) & np.isin(direction, wanted)
    else:
        keep = is_data(rows) & np.isin(direction, wanted)
    return take(rows, np.flatnonzero(keep))


def _after(number: IntArray, base: IntArray) -> IntArray:
    """How far sequence numbers lie after others, without wrap-around."""
    return np.asarray((number.astype(np.int64) - base + (1 << 31)) % (1 << 32) - (1 << 31))


def _first_seen(holes: Rows, data: Rows) -> IntArray:
    """When the second tap first has a packet with each hole's first byte; FOREVER if never."""
    result = np.full(len(holes), FOREVER)
    for mine, theirs in _by_direction(holes, data, turned=False):
        first = holes["seq"][mine].astype(np.int64)
        seq, size = data["seq"][theirs].astype(np.int64), data["payload_bytes"][theirs]
        # Few packets repeat old bytes; the others lie beyond every hole.
        low = _after(seq, first[:1])
        old = np.flatnonzero(low <= _after(first, first[:1]).max())
        for at in old:
            into = _after(first, seq[at])
            covers = (into >= 0) & (into < size[at])
            covers &= holes["first_ns"][mine] < data["second_ns"][theirs[at]]
            rows = mine[covers]
            result[rows] = np.minimum(result[rows], data["second_ns"][theirs[at]])
    return result


def _first_acked(holes: Rows, acks: Rows) -> IntArray:
    """When an ACK for each hole first passes the tap nearer the receiver; FOREVER if none does."""
    result = np.full(len(holes), FOREVER)
    for mine, theirs in _by_direction(holes, acks, turned=True):
        end = holes["seq"][mine].astype(np.int64) + holes["payload_bytes"][mine]
        time_ns = np.where(
            acks["first_ns"][theirs] == ABSENT, acks["second_ns"][theirs], acks["first_ns"][theirs]
        )
        reached = np.maximum.accumulate(_after(acks["ack"][theirs], end[:1]))
        at = np.searchsorted(reached, _after(end, end[:1]))
        found: BoolArray = at < len(reached)
        result[mine[found]] = time_ns[at[found]]
    return result


def _by_direction(holes: Rows, rows: Rows, *, turned: bool) -> list[tuple[IntArray, IntArray]]:
    """For each direction that has both, the numbers of its holes and of its rows."""
    mine, theirs = _direction(holes, turned=False), _direction(rows, turned=turned)
    return [
        (np.flatnonzero(mine == each), np.flatnonzero(theirs == each))
        for each in np.intersect1d(mine, theirs)
    ]
