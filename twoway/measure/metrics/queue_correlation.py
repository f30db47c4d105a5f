"""Correlation of two queues' lengths: 1 in phase, -1 out of phase."""

import math

from twoway.measure.analysis import Analysis
from twoway.measure.metric import Scope
from twoway.measure.queues import correlation

SCOPE = Scope.RUN
UNITS = {
    "queue_correlation": "1",
}


def measure(analysis: Analysis) -> dict[str, float]:
    """Compute Pearson's coefficient over time; NaN without two queues."""
    levels = [view.all_packets for view in analysis.queues.values()]
    if len(levels) != 2:
        return {"queue_correlation": math.nan}
    run = analysis.run
    return {"queue_correlation": correlation(levels[0], levels[1], run.steady_ns, run.stop_ns)}
