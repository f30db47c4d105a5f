"""Busy time of two links over time, in constant memory."""

from dataclasses import dataclass

import numpy as np

from capture_analysis.columns import BoolArray, IntArray
from capture_analysis.one_capture.facts import FloatArray

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


class BusySeries:
    """Time that packets take on each of two links, in bins of time.

    The bins depend only on the times of the first and the last packet, so that the series of a
    capture's parts merge into that of the whole.
    """

    def __init__(self) -> None:
        self._shift = _SHIFT
        self._first = 0
        self._busy_ns = np.zeros((2, 0), dtype=np.int64)

    def add(self, link: IntArray, time_ns: IntArray, service_ns: IntArray) -> None:
        """Take packets: link, time of capture, transmission time; shape (n,)."""
        if len(time_ns):
            self._span(int(time_ns.min()), int(time_ns.max()))
            at = (time_ns >> self._shift) - self._first
            np.add.at(self._busy_ns.reshape(-1), at + link * self._busy_ns.shape[1], service_ns)

    def merge(self, other: "BusySeries") -> None:
        """Add the busy time of another series."""
        first, shift, busy_ns = other._first, other._shift, other._busy_ns  # noqa: SLF001
        if not len(other):
            return
        if len(self) and shift > self._shift:
            up = shift - self._shift
            self._resize(shift, self._first >> up, ((self._first + len(self) - 1) >> up) + 1)
        self._shift = max(shift, self._shift)
        start_ns = (first + np.arange(len(other))) << shift
        for link in (0, 1):
            self.add(np.full(len(other), link), start_ns, busy_ns[link])

    def __len__(self) -> int:
        return self._busy_ns.shape[1]

    def _span(self, first_ns: int, last_ns: int) -> None:
        """Extend the bins to cover two times and all that is covered already."""
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
        into = np.zeros((2, end - first), dtype=np.int64)
        at = ((self._first + np.arange(len(self))) >> (shift - self._shift)) - first
        for link in (0, 1):
            np.add.at(into[link], at, self._busy_ns[link])
        self._shift, self._first, self._busy_ns = shift, first, into

    def shares(self) -> LinkShares:
        """Compute the share of each bin that the links transmit.

        Transmission time that exceeds a bin goes into the next one.

        Packets captured before the queue come in bursts, which the link needs time to transmit;
        those captured behind it come as the link transmits them. Pauses of both are left out.
        """
        width_ns = 1 << self._shift
        excess = np.cumsum(self._busy_ns - width_ns, axis=1)
        backlog = excess - np.minimum.accumulate(np.minimum(excess, 0), axis=1)
        before = np.concatenate((np.zeros((2, 1), dtype=np.int64), backlog[:, :-1]), axis=1)
        busy = (before + self._busy_ns - backlog) / width_ns
        return LinkShares(busy[:, ~_paused(busy, _PAUSE_NS // width_ns)], width_ns)


def _paused(busy: FloatArray, bins: int) -> BoolArray:
    """Tell which bins lie in a pause of both links, shape (bins,).

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
