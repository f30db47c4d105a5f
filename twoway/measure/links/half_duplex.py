"""The time for which each direction holds a half-duplex link's medium."""

import math

from capture_analysis.definition import Definition

from twoway.measure.analysis import Analysis
from twoway.measure.metric import Scope, estimates
from twoway.measure.queue_view import QueueView

MEDIUM_BUSY = Definition(
    "medium_busy",
    "1",
    "share of time in which packets of this direction hold a half-duplex medium, gaps included",
    most=1,
)


@estimates(Scope.QUEUE, MEDIUM_BUSY)
def medium_busy(analysis: Analysis, view: QueueView) -> tuple[float]:
    """Return the share of the steady window; NaN if each direction has a medium of its own."""
    if view.holds is None:
        return (math.nan,)
    run = analysis.run
    return (view.holds.held_ns(run.steady_ns, run.stop_ns) / run.window_ns,)
