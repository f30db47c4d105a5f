"""Converting the times of a run's hosts to the plan's clock.

A guest's clock is the plan's. A host that runs the backend `native` keeps its own clock: its kernel
stamps packets with it, and its programs subtract the offset that they were given at the start. In a
multi-host run each host has its own clock, which is measured before and after the run.
"""

from dataclasses import dataclass

import numpy as np
from capture_analysis.columns import IntArray

from twoway.manifest import Manifest


@dataclass(frozen=True)
class Clock:
    """A host's clock relative to the plan's.

    Attributes:
        start_ns: start of traffic, on the plan's clock.
        offset_ns: the clock's offset from the plan's at the start of traffic, positive if ahead.
        handed_ns: the offset that the host's programs subtracted from their times.
        drift_ppb: its drift against the plan's clock, in parts per billion, positive if faster.
        uncertainty_ns: the largest error of a converted time.
    """

    start_ns: int
    offset_ns: int
    handed_ns: int
    drift_ppb: float = 0.0
    uncertainty_ns: int = 0

    def of_stamps(self, time_ns: IntArray) -> IntArray:
        """Convert stamps of the host's kernel to the plan's clock; shape (n,), ns."""
        ahead_ns = time_ns - self.offset_ns
        if not self.drift_ppb:
            return np.asarray(ahead_ns, dtype=np.int64)
        drift = self.drift_ppb * 1e-9
        # Only the small drift is computed in floats, which would lose digits of a time in ns.
        gained_ns = np.rint((ahead_ns - self.start_ns) * (drift / (1 + drift))).astype(np.int64)
        return np.asarray(ahead_ns - gained_ns, dtype=np.int64)

    def of_programs(self, time_ns: IntArray) -> IntArray:
        """Convert times of the host's programs to the plan's clock.

        Shape (n,), ns.
        """
        return self.of_stamps(time_ns + self.handed_ns)


def read_clock(manifest: Manifest, node: str) -> Clock:
    """Read the clock of the host that played a node from a manifest."""
    start_ns, common_ns = manifest.clock.start_ns, manifest.clock_offset_ns
    own = manifest.clocks.get(node)
    if own is None:
        return Clock(start_ns, common_ns, common_ns)
    return Clock(
        start_ns,
        common_ns + own.offset_ns,
        common_ns + own.handed_ns,
        own.drift_ppb,
        own.uncertainty_ns,
    )
