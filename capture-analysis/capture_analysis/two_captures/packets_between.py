"""Packets between the taps, in the orders in which measures need them.

The path between the taps has the directions A_TO_B and B_TO_A (`path_direction`). The directions of
connections are numbered as in directions.py: the data that half h of connection f sends, and the
pure ACKs that answer it, are direction 2 * f + h. Its data and its ACKs cross the path in opposite
directions.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from capture_analysis.ack_compression import COMPRESSED_BELOW
from capture_analysis.columns import BoolArray, IntArray
from capture_analysis.facts.running_totals import Previous
from capture_analysis.row_order import by_lane
from capture_analysis.tracking import Kind
from capture_analysis.two_captures.match_rows import ROW, Rows, append_parts, select_rows, take
from capture_analysis.two_captures.matching import FOREVER, UNKNOWN, CaptureReader, Matched, match

if TYPE_CHECKING:
    from capture_analysis.two_captures.first_pass import Survey


A_TO_B, B_TO_A = 0, 1
ABSENT = -FOREVER

# A row of match_rows with the times at both taps in place of time and key; the other columns are
# those of the packet at its first tap.
_TIMES = {"time_ns": "first_ns", "key": "second_ns"}
CROSSING = np.dtype([(_TIMES.get(name, name), ROW[name]) for name in ROW.names or ()])


class View:
    """Some packets of one path direction, by direction of connection, then in the order given.

    Args:
        rows: of type CROSSING.
        which: shape (len(rows),), the rows to view.
        turned: True if packets belong to the opposite half's direction, as ACKs do.

    Attributes:
        chosen: shape (n,), the index in `rows` of each packet.
        direction: shape (n,), the direction of each packet.
        directions: shape (k,), the directions that have packets, ascending.
        starts: shape (k,), the first row of each direction.
    """

    def __init__(self, rows: Rows, which: BoolArray, *, turned: bool = False) -> None:
        direction = rows["flow"] << np.uint32(1) | (rows["half"] ^ np.uint8(turned))
        order = by_lane(direction, np.flatnonzero(which))
        self._rows, self.chosen = rows, order.rows
        self.directions = order.lanes
        self.starts = np.cumsum(order.counts) - order.counts
        self.direction = np.repeat(order.lanes, order.counts)
        self._columns: dict[str, IntArray] = {}

    def __len__(self) -> int:
        return len(self.direction)

    def __getitem__(self, column: str) -> IntArray:
        """Return a column of CROSSING, shape (n,), int64."""
        if column not in self._columns:
            values = self._rows[column].take(self.chosen)
            self._columns[column] = values.astype(np.int64, copy=False)
        return self._columns[column]

    def sum(self, values: IntArray | BoolArray) -> IntArray:
        """Sum a column of n values for each direction, shape (k,)."""
        if not len(self):
            return np.zeros(0, dtype=np.int64)
        return np.asarray(np.add.reduceat(values, self.starts, dtype=np.int64))


class Crossings:
    """Packets of one direction whose fate is known.

    Attributes:
        path_direction: A_TO_B or B_TO_A.
        sent: of type CROSSING, in the order of the first tap. second_ns is ABSENT if the second
            tap lacks the packet; first_ns if the first tap lacks it (ordered by second_ns then).
        arrived: the packets that the second tap has, in its order; a packet may arrive in a later
            block than it is sent.
        until_ns: every packet that passes a tap before this time was in this block or an earlier
            one.
    """

    def __init__(self, path_direction: int, sent: Rows, arrived: Rows, until_ns: int) -> None:
        self.path_direction, self.until_ns = path_direction, until_ns
        self.sent, self.arrived = sent, arrived

    @cached_property
    def both(self) -> Rows:
        """Rows of `sent` that both taps have."""
        first_ns, second_ns = self.sent["first_ns"], self.sent["second_ns"]
        return select_rows(self.sent, (first_ns != ABSENT) & (second_ns != ABSENT))

    @cached_property
    def acks(self) -> View:
        """Pure ACKs of `both`, by the direction whose data they acknowledge."""
        return View(self.both, is_ack(self.both), turned=True)

    @cached_property
    def data(self) -> View:
        """Packets of `both` with payload, by direction."""
        return View(self.both, is_data(self.both))

    @cached_property
    def arrived_data(self) -> View:
        """Packets of `arrived` with payload, by direction."""
        return View(self.arrived, is_data(self.arrived))

    @cached_property
    def lost_data(self) -> Rows:
        """Data of `sent` that the second tap lacks."""
        gone = select_rows(self.sent, self.sent["second_ns"] == ABSENT)
        return select_rows(gone, is_data(gone))


def is_ack(rows: Rows) -> BoolArray:
    """Tell which rows are pure ACKs of any kind, shape (n,)."""
    # Kinds are u1: a lower one wraps around to a large number.
    return np.asarray(rows["kind"] - np.uint8(Kind.ACK) <= np.uint8(Kind.OLD_ACK - Kind.ACK))


def is_data(rows: Rows) -> BoolArray:
    """Tell which rows carry payload, shape (n,)."""
    first, last = Kind.NEW_DATA, Kind.PROBE
    return np.asarray(rows["kind"] - np.uint8(first) <= np.uint8(last - first))


@dataclass
class Uncommon:
    """Packets that only one capture has, and that do not count as lost.

    Attributes:
        outside: captured while the other capture did not run.
        strangers: packets of connections without a packet in the other capture.
    """

    outside: int = 0
    strangers: int = 0


class _Direction:
    """Packets of one direction whose fate is known, kept until they are in order."""

    def __init__(self, path_direction: int) -> None:
        self.path_direction = path_direction
        self._sent = np.zeros(0, dtype=CROSSING)
        self._arriving = np.zeros(0, dtype=CROSSING)

    def add(self, parts: list[Rows], until_ns: int) -> Crossings:
        rows = append_parts([self._sent, *parts])
        time_ns = np.where(rows["first_ns"] == ABSENT, rows["second_ns"], rows["first_ns"])
        sent, self._sent = _ordered(rows, time_ns, until_ns)
        here = select_rows(sent, sent["second_ns"] != ABSENT)
        arriving = append_parts((self._arriving, here))
        arrived, self._arriving = _ordered(arriving, arriving["second_ns"].copy(), until_ns)
        return Crossings(self.path_direction, sent, arrived, until_ns)


def _ordered(rows: Rows, time_ns: IntArray, until_ns: int) -> tuple[Rows, Rows]:
    """Sort the rows before a time; return them, and the rest.

    Equal times keep the order of the capture.
    """
    order = np.argsort(time_ns, kind="stable")
    time_ns, capture_order = time_ns[order], rows["order"][order]
    tied = (time_ns[1:] == time_ns[:-1]) & (capture_order[1:] < capture_order[:-1])
    if tied.any():
        order = np.lexsort((rows["order"], time_ns[np.argsort(order)]))
    split = int(np.searchsorted(time_ns, until_ns))
    return take(rows, order[:split]), take(rows, order[split:])


def packets_between(
    a: CaptureReader, b: CaptureReader, survey: "Survey", uncommon: tuple[Uncommon, Uncommon]
) -> Iterator[tuple[Crossings, Crossings]]:
    """Read both captures once more, now that clock and connections are known.

    Args:
        a: the first capture.
        b: the second capture, on the first's clock.
        survey: the results of the first reading.
        uncommon: counts of the packets that only one capture has; they are increased.
    """
    forward, reverse = _Direction(A_TO_B), _Direction(B_TO_A)
    for found in match(a, b, survey.horizon_ns):
        parts = _by_path_direction(found, survey, uncommon)
        yield forward.add(parts[0], found.until_ns), reverse.add(parts[1], found.until_ns)


def _by_path_direction(
    found: Matched, survey: "Survey", uncommon: tuple[Uncommon, Uncommon]
) -> tuple[list[Rows], list[Rows]]:
    """Convert a step's matches to crossings in each direction of the path."""
    a, b = found.a.view(CROSSING), found.b.view(CROSSING)
    b_first = survey.first_half[a["flow"]] != a["half"]
    ahead, behind = np.flatnonzero(~b_first), np.flatnonzero(b_first)
    forward, reverse = take(a, ahead), _renumbered(take(b, behind), survey)
    forward["second_ns"] = b["first_ns"][ahead]
    reverse["second_ns"] = a["first_ns"][behind]
    a_alone = found.a_alone.view(CROSSING)
    b_alone = _renumbered(found.b_alone.view(CROSSING).copy(), survey)
    directions: tuple[list[Rows], list[Rows]] = ([forward], [reverse])
    for rows, first_direction, counts in (
        (a_alone, A_TO_B, uncommon[0]),
        (b_alone, B_TO_A, uncommon[1]),
    ):
        known = rows["flow"] != np.uint32(_UNKNOWN_FLOW)
        if first_direction == A_TO_B:
            known &= survey.first_half[np.where(known, rows["flow"], 0)] != UNKNOWN
        counts.strangers += int((~known).sum())
        common = select_rows(rows, known)
        path_direction = survey.first_half[common["flow"]] ^ common["half"]
        for each in (A_TO_B, B_TO_A):
            alone = select_rows(common, path_direction == each)
            inside = _inside(alone, each, first_direction, survey)
            counts.outside += len(alone) - len(inside)
            directions[each].append(inside)
    return directions


_UNKNOWN_FLOW = (1 << 32) - 1


def _renumbered(rows: Rows, survey: "Survey") -> Rows:
    """Give the second capture's packets the first's flow and half numbers."""
    rows["half"] ^= survey.turned[rows["flow"]].astype(np.uint8)
    rows["flow"] = survey.flow_of_b[rows["flow"]]  # UNKNOWN becomes _UNKNOWN_FLOW
    return rows


def _inside(rows: Rows, path_direction: int, first_direction: int, survey: "Survey") -> Rows:
    """Select packets of only one tap, from while the other capture ran.

    The time at the other tap is set to ABSENT.
    """
    rows = rows.copy()
    time_ns = rows["first_ns"].copy()
    first, last = survey.common_ns[path_direction]
    other = survey.b_span_ns if first_direction == A_TO_B else survey.a_span_ns
    if path_direction == first_direction:
        # These were sent between two packets that arrived, or early enough to arrive before the
        # capture's end.
        inside = (time_ns >= first) & (time_ns <= max(last, other[1] - survey.horizon_ns))
        rows["second_ns"] = ABSENT
    else:
        inside = (time_ns >= first + survey.horizon_ns) & (time_ns <= other[1])
        rows["second_ns"], rows["first_ns"] = time_ns, ABSENT
    return select_rows(rows, inside)


@dataclass(frozen=True)
class AckGaps:
    """A row for each row of `Crossings.acks`; columns of shape (n,).

    Attributes:
        sent_ns, arrived_ns: time since the ACK before, at the first and the second tap; -1 for a
            direction's first.
        acked_bytes: bytes acknowledged beyond the ACK before; 0 for a direction's first.
    """

    sent_ns: IntArray
    arrived_ns: IntArray
    acked_bytes: IntArray

    @cached_property
    def compressed(self) -> BoolArray:
        """Shape (n,): True if a gap shrank to less than 0.75 of its length when sent."""
        arrived_ns = self.arrived_ns
        return (arrived_ns >= 0) & (arrived_ns < COMPRESSED_BELOW * self.sent_ns)


class AckGapFinder:
    """Computes the gaps of ACKs that come block by block."""

    def __init__(self) -> None:
        # Times and acknowledgement number of each direction's last ACK.
        self._sent, self._arrived, self._ack = Previous(), Previous(), Previous()

    def gaps(self, acks: View) -> AckGaps:
        """Take the next ACKs; return their gaps."""
        where = acks.directions, acks.starts
        sent, arrived, ack = acks["first_ns"], acks["second_ns"], acks["ack"]
        before = self._sent.take_previous(*where, sent)
        known = before != -1
        acked = (ack - self._ack.take_previous(*where, ack)).astype(
            np.int32
        )  # ACK numbers wrap modulo 2^32
        return AckGaps(
            np.where(known, sent - before, -1),
            np.where(known, arrived - self._arrived.take_previous(*where, arrived), -1),
            np.maximum(acked, 0) * known.astype(np.int64),
        )
