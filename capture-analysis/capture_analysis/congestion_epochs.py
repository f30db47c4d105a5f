"""Cluster drops into congestion epochs, and find their victims.

Zhang, Shenker and Clark (1991, section 2.1) call an epoch the time in which one window of packets
is acknowledged, and an epoch with drops a congestion epoch. A sender learns of a drop within a
round trip, so drops less than the longest round trip apart have one cause.
"""

from dataclasses import dataclass

import numpy as np

from capture_analysis.columns import IntArray

SEVERAL = -1


@dataclass(frozen=True)
class CongestionEpochs:
    """Columns of shape (k,), one row per epoch, in time order.

    Attributes:
        start_ns: time of the epoch's first drop.
        drops: number of drops in the epoch.
        victim: the connection that lost all of these packets, or SEVERAL.
    """

    start_ns: IntArray
    drops: IntArray
    victim: IntArray

    def select_window(self, start_ns: int, stop_ns: int) -> "CongestionEpochs":
        """Select the epochs that start within a window of time."""
        rows = (self.start_ns >= start_ns) & (self.start_ns < stop_ns)
        return CongestionEpochs(self.start_ns[rows], self.drops[rows], self.victim[rows])

    def single_victim_share(self) -> float:
        """Compute the share of epochs with a single victim; NaN without epochs."""
        return float((self.victim != SEVERAL).mean()) if len(self.victim) else float("nan")

    def period_s(self) -> float:
        """Compute the mean time between epochs, s; NaN with fewer than two."""
        if len(self.start_ns) < 2:
            return float("nan")
        return float((self.start_ns[-1] - self.start_ns[0]) / (len(self.start_ns) - 1) / 1e9)

    def alternating_share(self) -> float:
        """Compute the share of epochs whose victim differs from that of the epoch before.

        Returns: share of the pairs of successive epochs; pairs with a victim of SEVERAL count as
            not alternating. NaN with fewer than two epochs.
        """
        before, after = self.victim[:-1], self.victim[1:]
        changed = (before != SEVERAL) & (after != SEVERAL) & (before != after)
        return float(changed.mean()) if len(changed) else float("nan")


def congestion_epochs(time_ns: IntArray, victim: IntArray, gap_ns: int) -> CongestionEpochs:
    """Cluster drops into epochs.

    Args:
        time_ns: shape (n,), time of each drop; sorted.
        victim: shape (n,), number of the connection that lost the packet, from 0.
        gap_ns: an epoch ends with a drop that no other follows within this time, ns.
    """
    if not len(time_ns):
        return CongestionEpochs(time_ns, time_ns, victim)
    first = np.flatnonzero(np.diff(time_ns, prepend=time_ns[0] - gap_ns - 1) > gap_ns)
    drops = np.diff(first, append=len(time_ns))
    lowest = np.minimum.reduceat(victim, first)
    highest = np.maximum.reduceat(victim, first)
    return CongestionEpochs(time_ns[first], drops, np.where(lowest == highest, lowest, SEVERAL))
