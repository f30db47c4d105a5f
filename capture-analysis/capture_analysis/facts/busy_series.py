"""Sums over time, and the busy time of two links, in constant memory."""

from dataclasses import dataclass

import numpy as np

from capture_analysis.columns import BoolArray, IntArray
from capture_analysis.facts.facts import FloatArray

BINS = 1 << 15
# The first bins are 2^17 ns wide, 131 us; they double until BINS of them span the capture.
_SHIFT = 17
# Longer times in which neither link has anything to transmit are pauses of the application.
_PAUSE_NS = 1_000_000_000


@dataclass(frozen=True)
class LinkShares:
    """Share of time in which each link transmits, shape (2, bins).

    The width of a bin is `width_ns`.
    """

    busy: FloatArray
    width_ns: int


class BinnedSums:
    """Sums in bins of time, for several lanes.

    The bins depend only on the times of the first and the last value, so the sums of a capture's
    parts merge into those of the whole.

    Args:
        lanes: number of sums per bin.
        shift: the first bins are 2^shift ns wide; they double until BINS of them span the capture.
    """

    def __init__(self, lanes: int, shift: int) -> None:
        self._shift = shift
        self._first = 0
        self._sums = np.zeros((lanes, 0), dtype=np.int64)

    def add(self, lane: IntArray, time_ns: IntArray, value: IntArray) -> None:
        """Take values: lane, time, value; shape (n,)."""
        if len(time_ns):
            self._span(int(time_ns.min()), int(time_ns.max()))
            at = (time_ns >> self._shift) - self._first
            np.add.at(self._sums.reshape(-1), at + lane * self._sums.shape[1], value)

    def merge(self, other: "BinnedSums") -> None:
        """Add the sums of another part."""
        first, shift, sums = other._first, other._shift, other._sums  # noqa: SLF001
        if not len(other):
            return
        if len(self) and shift > self._shift:
            up = shift - self._shift
            self._resize(shift, self._first >> up, ((self._first + len(self) - 1) >> up) + 1)
        self._shift = max(shift, self._shift)
        start_ns = (first + np.arange(len(other))) << shift
        for lane, values in enumerate(sums):
            self.add(np.full(len(other), lane), start_ns, values)

    def __len__(self) -> int:
        return self._sums.shape[1]

    @property
    def width_ns(self) -> int:
        """Width of a bin."""
        return 1 << self._shift

    def largest_sums(self) -> FloatArray:
        """Return the largest sum of each lane over its bin's width, per ns; shape (lanes,)."""
        most: FloatArray = self._sums.max(axis=1, initial=0) / self.width_ns
        return most

    def _span(self, first_ns: int, last_ns: int) -> None:
        """Extend the bins to cover two times besides the present span."""
        shift = self._shift
        if len(self):
            first_ns = min(first_ns, self._first << shift)
            last_ns = max(last_ns, ((self._first + len(self)) << shift) - 1)
        while (last_ns >> shift) - (first_ns >> shift) >= BINS:
            shift += 1
        first, end = first_ns >> shift, (last_ns >> shift) + 1
        if (shift, first, end) != (self._shift, self._first, self._first + len(self)):
            self._resize(shift, first, end)

    def _resize(self, shift: int, first: int, end: int) -> None:
        into = np.zeros((len(self._sums), end - first), dtype=np.int64)
        at = ((self._first + np.arange(len(self))) >> (shift - self._shift)) - first
        for lane, values in enumerate(self._sums):
            np.add.at(into[lane], at, values)
        self._shift, self._first, self._sums = shift, first, into


class BusySeries(BinnedSums):
    """Time that packets take on each of two links, in bins of time."""

    def __init__(self) -> None:
        super().__init__(2, _SHIFT)

    def shares(self) -> LinkShares:
        """Compute the share of each bin in which the links transmit.

        Transmission time that exceeds a bin goes into the next one.

        Packets captured before the queue come in bursts, which the link needs time to transmit;
        those captured after it come as the link transmits them. Pauses of both links are left out.
        """
        width_ns = 1 << self._shift
        excess = np.cumsum(self._sums - width_ns, axis=1)
        backlog = excess - np.minimum.accumulate(np.minimum(excess, 0), axis=1)
        before = np.concatenate((np.zeros((2, 1), dtype=np.int64), backlog[:, :-1]), axis=1)
        busy = (before + self._sums - backlog) / width_ns
        return LinkShares(busy[:, ~_paused(busy, _PAUSE_NS // width_ns)], width_ns)


def _paused(busy: FloatArray, bins: int) -> BoolArray:
    """Mark the bins in a pause of both links, shape (bins,).

    A pause has at least `bins` bins.
    """
    idle = (busy == 0).all(axis=0)
    edges = np.flatnonzero(np.diff(idle, prepend=False, append=False))
    starts, ends = edges[::2], edges[1::2]
    long = ends - starts >= max(bins, 1)
    paused = np.zeros(len(idle) + 1, dtype=np.int64)
    np.add.at(paused, starts[long], 1)
    np.add.at(paused, ends[long], -1)
    return np.cumsum(paused)[:-1] > 0
