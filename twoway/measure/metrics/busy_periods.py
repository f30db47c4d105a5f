"""Busy periods: clusters in which data passes a queue.

After Kalampoukas et al. (1998), section 3.
"""

import math

import numpy as np

from twoway.measure.analysis import Analysis, QueueView
from twoway.measure.metric import Scope

SCOPE = Scope.QUEUE
UNITS = {
    "busy_periods": "1",
    "busy_period_segments": "segments",
    "busy_period_cycle": "s",
}


def measure(analysis: Analysis, view: QueueView) -> dict[str, float]:
    """Return number, median size and mean cycle of busy periods."""
    busy = analysis.busy(view)
    segments = busy.segments
    return {
        "busy_periods": len(segments),
        "busy_period_segments": float(np.median(segments)) if len(segments) else math.nan,
        "busy_period_cycle": busy.cycle_s(),
    }
