"""Maximal runs of packets, found block by block: bunches, compression events, busy periods."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from capture_analysis import native
from capture_analysis.columns import BoolArray, IntArray
from capture_analysis.runs_in_c import ended_runs


@dataclass(frozen=True)
class Runs:
    """Columns of shape (k,), one row per run.

    Attributes:
        lane: whose run it is, see `RunFinder`.
        rows: how many packets it has.
        first_ns, last_ns: time of its first and of its last packet.
        total: the sum over its packets of the value that `RunFinder.add` was given; shape
            (values, k) if it was given several.
    """

    lane: IntArray
    rows: IntArray
    first_ns: IntArray
    last_ns: IntArray
    total: IntArray

    def where(self, which: BoolArray | IntArray) -> "Runs":
        """Some of the runs."""
        return Runs(
            self.lane[which],
            self.rows[which],
            self.first_ns[which],
            self.last_ns[which],
            self.total[..., which],
        )


class RunFinder:
    """Runs of each lane, whose packets come in any number of blocks.

    A lane is whatever has its own sequence of packets: half a connection (2 * flow + half), a
    queue. The result does not depend on where blocks end.

    Args:
        values: how many values `Runs.total` sums apart; 0 for one, without an axis of its own.
        least_rows: shorter runs are not returned.
        in_c: whether the native library finds them; by default, if there is one.
    """

    def __init__(self, values: int = 0, least_rows: int = 1, in_c: bool | None = None) -> None:
        self._values, self._least_rows = values, least_rows
        self._in_c = native.available() if in_c is None else in_c
        # The run of each lane that may go on; it has no rows where there is none.
        self._open = self._no_runs()
        # What the library writes into, over and over.
        self._over = self._no_runs()

    def add(
        self,
        lane: IntArray,
        joined: BoolArray,
        time_ns: IntArray,
        value: IntArray | Sequence[IntArray | BoolArray],
    ) -> Runs:
        """Take packets; return the runs that they show to be over, by lane and in order.

        Args:
            lane: shape (n,), not descending; within a lane packets are in order.
            joined: shape (n,), whether the packet goes on the run of the lane's packet before it,
                which may have come in an earlier block; of no account for a lane's very first.
            time_ns: shape (n,).
            value: shape (n,), what `Runs.total` sums; or so many of them.
        """
        if not len(lane):
            return self._no_runs()
        self._grow(int(lane[-1]) + 1)
        if self._in_c:
            if len(self._over.lane) < len(lane):
                self._over = self._no_runs(len(lane))
            ended = ended_runs(
                lane,
                joined,
                time_ns,
                value if self._values else (value,),  # type: ignore[arg-type] # as in _sums
                least_rows=self._least_rows,
                open_runs=self._open,
                over=self._over,
            )
            return self._over.where(np.arange(ended))
        return self._add(lane, joined, time_ns, value)

    def _add(
        self,
        lane: IntArray,
        joined: BoolArray,
        time_ns: IntArray,
        value: IntArray | Sequence[IntArray | BoolArray],
    ) -> Runs:
        """The same with numpy."""
        starts, ends, heads, tails = self._bounds(lane, joined)
        found = Runs(
            lane.take(starts),
            ends - starts + 1,
            time_ns.take(starts),
            time_ns.take(ends),
            self._sums(value, starts, ends),
        )
        over = self._continue(found, heads, joined[starts[heads]])
        self._put(found.lane[tails], found.where(tails))
        done = found.rows >= self._least_rows
        done[tails] = False
        found = found.where(done.nonzero()[0])
        if not len(over.lane):
            return found
        both = _joined(over, found)
        return both.where(np.argsort(both.lane, kind="stable"))

    def _bounds(
        self, lane: IntArray, joined: BoolArray
    ) -> tuple[IntArray, IntArray, IntArray, IntArray]:
        """First and last row of each run, and which runs are their lanes' first and last.

        Runs are left out that are too short and cannot go on, before anything is summed.
        """
        first_of_lane = starts_of(lane)
        starts = (first_of_lane | ~joined).nonzero()[0]
        ends = ends_of(starts, len(lane))
        heads = first_of_lane.take(starts).nonzero()[0]
        tails = ends_of(heads, len(starts))
        wanted = ends - starts >= self._least_rows - 1
        wanted[heads] = wanted[tails] = True
        place = np.cumsum(wanted) - 1
        return starts.compress(wanted), ends.compress(wanted), place[heads], place[tails]

    def _sums(
        self, value: IntArray | Sequence[IntArray | BoolArray], starts: IntArray, ends: IntArray
    ) -> IntArray:
        """Of each value over each run; runs may be short, so by differences of a running sum."""

        def total(column: IntArray | BoolArray) -> IntArray:
            running = np.cumsum(column, dtype=np.int64)
            return np.asarray(running.take(ends) - running.take(starts) + column.take(starts))

        if self._values:
            return np.stack([total(column) for column in value])
        return total(value)  # type: ignore[arg-type] # one column where no number of them was given

    def finish(self) -> Runs:
        """The runs that were not over when the packets ended."""
        rest, self._open = self._open, self._no_runs()
        return rest.where(np.flatnonzero(rest.rows >= self._least_rows))

    def _continue(self, found: Runs, heads: IntArray, joined: BoolArray) -> Runs:
        """Let each lane's first run go on the open one if it does; return the open ones over."""
        lanes = found.lane[heads]
        before = self._open.where(lanes)
        there = before.rows > 0
        on, over = joined & there, ~joined & (before.rows >= self._least_rows)
        into = heads[on]
        found.rows[into] += before.rows[on]
        found.first_ns[into] = before.first_ns[on]
        found.total[..., into] += before.total[..., on]
        return before.where(over)

    def _put(self, lanes: IntArray, runs: Runs) -> None:
        self._open.rows[lanes] = runs.rows
        self._open.first_ns[lanes] = runs.first_ns
        self._open.last_ns[lanes] = runs.last_ns
        self._open.total[..., lanes] = runs.total

    def _grow(self, lanes: int) -> None:
        known = len(self._open.lane)
        if lanes > known:
            size = max(lanes, 2 * known)
            more = self._no_runs(size - known)
            self._open = _joined(self._open, more)
            self._open.lane[:] = np.arange(size)

    def _no_runs(self, rows: int = 0) -> Runs:
        shape = (self._values, rows) if self._values else (rows,)
        lane, count, first_ns, last_ns = np.zeros((4, rows), dtype=np.int64)
        return Runs(lane, count, first_ns, last_ns, np.zeros(shape, dtype=np.int64))


def starts_of(lane: NDArray[np.integer]) -> BoolArray:
    """Shape (n,): whether each of some rows in lane order is its lane's first."""
    first = np.empty(len(lane), dtype=np.bool_)
    first[:1] = True
    np.not_equal(lane[1:], lane[:-1], out=first[1:])
    return first


def ends_of(starts: IntArray, rows: int) -> IntArray:
    """The last of the rows that begin at each of `starts`, of so many rows."""
    ends = np.empty_like(starts)
    np.subtract(starts[1:], 1, out=ends[:-1])
    ends[-1:] = rows - 1
    return ends


def _joined(first: Runs, second: Runs) -> Runs:
    return Runs(
        np.concatenate((first.lane, second.lane)),
        np.concatenate((first.rows, second.rows)),
        np.concatenate((first.first_ns, second.first_ns)),
        np.concatenate((first.last_ns, second.last_ns)),
        np.concatenate((first.total, second.total), axis=-1),
    )
