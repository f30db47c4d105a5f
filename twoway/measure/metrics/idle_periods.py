"""Idle periods of a link: their number and lengths."""

import math

import numpy as np

from twoway.measure.analysis import Analysis, QueueView
from twoway.measure.metric import Scope

SCOPE = Scope.QUEUE
UNITS = {
    "idle_periods": "1",
    "idle_period_mean": "s",
    "idle_period_max": "s",
}


def measure(analysis: Analysis, view: QueueView) -> dict[str, float]:
    """Count and measure idle periods that begin and end in the steady window."""
    run = analysis.run
    levels = view.all_packets.within(run.steady_ns, run.stop_ns)
    rows = np.flatnonzero(levels.packets[:-1] == 0)
    lengths_s = (levels.time_ns[rows + 1] - levels.time_ns[rows]) / 1e9
    lengths_s = lengths_s[lengths_s > 0]
    return {
        "idle_periods": len(lengths_s),
        "idle_period_mean": float(lengths_s.mean()) if len(lengths_s) else math.nan,
        "idle_period_max": float(lengths_s.max(initial=0)),
    }
