"""Maximal runs of packets, found block by block: bunches, compression events, busy periods."""

from dataclasses import dataclass

import numpy as np

from capture_analysis.columns import BoolArray, IntArray


@dataclass(frozen=True)
class Runs:
    """Columns of shape (k,), one row per run.

    Attributes:
        lane: whose run it is, see `RunFinder`.
        rows: how many packets it has.
        first_ns, last_ns: time of its first and of its last packet.
        total: the sum over its packets of the value that `RunFinder.add` was given.
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
            self.total[which],
        )


class RunFinder:
    """Runs of each lane, whose packets come in any number of blocks.

    A lane is whatever has its own sequence of packets: half a connection (2 * flow + half), a
    queue. The result does not depend on where blocks end.
    """

    def __init__(self) -> None:
        self._open = _no_runs()

    def add(self, lane: IntArray, joined: BoolArray, time_ns: IntArray, value: IntArray) -> Runs:
        """Take packets; return the runs that they show to be over.

        Args:
            lane: shape (n,), not descending; within a lane packets are in order.
            joined: shape (n,), whether the packet goes on the run of the lane's packet before it,
                which may have come in an earlier block; of no account for a lane's very first.
            time_ns: shape (n,).
            value: shape (n,), what `Runs.total` sums.
        """
        if not len(lane):
            return _no_runs()
        before = self._open
        # The open runs go in front of their lanes as one packet each.
        lanes = np.concatenate((before.lane, lane))
        order = np.argsort(lanes, kind="stable")
        lanes = lanes[order]
        goes_on = np.concatenate((np.zeros(len(before.lane), np.bool_), joined))[order]
        goes_on[0] = False
        goes_on[1:] &= lanes[1:] == lanes[:-1]
        starts = np.flatnonzero(~goes_on)
        ends = np.append(starts[1:], len(lanes)) - 1
        ones = np.ones(len(lane), dtype=np.int64)
        found = Runs(
            lanes[starts],
            np.add.reduceat(np.concatenate((before.rows, ones))[order], starts),
            np.concatenate((before.first_ns, time_ns))[order][starts],
            np.concatenate((before.last_ns, time_ns))[order][ends],
            np.add.reduceat(np.concatenate((before.total, value))[order], starts),
        )
        last_of_lane = np.append(found.lane[1:] != found.lane[:-1], True)
        self._open = found.where(last_of_lane)
        return found.where(~last_of_lane)

    def finish(self) -> Runs:
        """The runs that were not over when the packets ended."""
        rest, self._open = self._open, _no_runs()
        return rest


def _no_runs() -> Runs:
    return Runs(*(np.zeros(0, dtype=np.int64) for _ in range(5)))
