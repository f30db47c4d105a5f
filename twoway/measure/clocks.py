"""The clocks of a run's machines, and the plan's: every time of a run is on the plan's.

A guest's clock is the plan's. The clock of a machine that is no guest goes on as it is: its kernel
stamps packets by it, and its programs take from it what they were told that it is ahead. Of several
machines (a bench) each has its own, which is measured before and after the run.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from capture_analysis.columns import IntArray


@dataclass(frozen=True)
class Clock:
    """A machine's clock.

    Attributes:
        start_ns: start of traffic, on the plan's clock.
        offset_ns: how far it is ahead of the plan's then.
        handed_ns: how far its programs took it to be ahead.
        drift_ppb: how much faster than the plan's it runs.
        uncertainty_ns: by how much all that may be off.
    """

    start_ns: int
    offset_ns: int
    handed_ns: int
    drift_ppb: float = 0.0
    uncertainty_ns: int = 0

    def of_stamps(self, time_ns: IntArray) -> IntArray:
        """Stamps of its kernel, as times on the plan's clock; shape (n,), ns."""
        ahead_ns = time_ns - self.offset_ns
        drift = self.drift_ppb * 1e-9
        # The small part alone is a float: of an hour in ns it would lose digits.
        gained_ns = np.rint((ahead_ns - self.start_ns) * (drift / (1 + drift))).astype(np.int64)
        return np.asarray(ahead_ns - gained_ns, dtype=np.int64)

    def of_programs(self, time_ns: IntArray) -> IntArray:
        """Times that its programs wrote down, likewise."""
        return self.of_stamps(time_ns + self.handed_ns)


def read_clock(manifest: Mapping[str, Any], node: str) -> Clock:
    """The clock of the machine that played a node, as the manifest has it."""
    start_ns, common_ns = manifest["clock"]["start_ns"], manifest["clock_offset_ns"]
    own = manifest.get("clocks", {}).get(node)
    if own is None:
        return Clock(start_ns, common_ns, common_ns)
    return Clock(
        start_ns,
        common_ns + own["offset_ns"],
        common_ns + own["handed_ns"],
        own["drift_ppb"],
        own["uncertainty_ns"],
    )
