"""The share of time in which a queue is the bottleneck.

After Ge et al. (2011), sections 4.1 and 6.

In the paper a link is the bottleneck while it is full: there is queueing delay on it, and none on
the others. Real packets come in bunches, so that every queue holds some; here the bottleneck is the
queue with the longest delay, which would be the last to run empty.
"""

from twoway.measure.analysis import Analysis, QueueView
from twoway.measure.metric import Scope
from twoway.measure.queues import last_to_empty_ns

SCOPE = Scope.QUEUE
UNITS = {
    "bottleneck_time": "1",
}


def measure(analysis: Analysis, view: QueueView) -> dict[str, float]:
    """Return the share of the steady window with the longest delay here."""
    run = analysis.run
    others = [each.passed for each in analysis.queues.values() if each is not view]
    last_ns = last_to_empty_ns(view.passed, others, run.steady_ns, run.stop_ns)
    return {"bottleneck_time": last_ns / run.window_ns}
