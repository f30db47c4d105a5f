"""The utilisation of a link, and the time for which it is the bottleneck.

In Ge et al. (2011), sections 4.1 and 6, a link is the bottleneck while it is full: it has queueing
delay, and the others have none. Real packets come in bunches, so every queue holds some; here the
bottleneck is the queue with the longest delay, the last to run empty. The paper's utilisation
(section 4.2) counts data only; headers of data packets count.
"""

import math

from capture_analysis.definition import Definition
from capture_analysis.metrics.utilisation import UTILISATION

from twoway.measure import throughput
from twoway.measure.analysis import Analysis
from twoway.measure.metric import Scope, estimates
from twoway.measure.queue_view import QueueView

UTILISATION_DATA = Definition(
    "utilisation_data", "1", "share of time in which the link transmits data", "Ge et al. 2011"
)
BOTTLENECK_TIME = Definition(
    "bottleneck_time",
    "1",
    "share of time in which this queue would be the last of all to run empty",
    "Ge et al. 2011, section 6",
    most=1,
)
BOTTLENECK_CHANGES = Definition(
    "bottleneck_changes",
    "/s",
    "rate at which another queue becomes the last to run empty, while any holds packets",
    "Ge et al. 2011, section 5.1",
)


@estimates(Scope.QUEUE, UTILISATION, UTILISATION_DATA)
def utilisation(analysis: Analysis, view: QueueView) -> tuple[float, ...]:
    """Compute the shares of the steady window."""
    steady = (analysis.run.steady_ns, analysis.run.stop_ns)
    begin_ns = view.holds.bits_begin_ns(view.passed) if view.holds else None
    return (
        throughput.utilisation(view.passed, *steady, begin_ns=begin_ns),
        throughput.utilisation(view.passed, *steady, begin_ns=begin_ns, data_only=True),
    )


@estimates(Scope.QUEUE, BOTTLENECK_TIME)
def bottleneck_time(analysis: Analysis, view: QueueView) -> tuple[float, ...]:
    """Return the share of the steady window in which this queue has the longest delay."""
    number = list(analysis.queues).index(view.queue.direction)
    return (analysis.last_to_empty.last_ns[number] / analysis.run.window_ns,)


@estimates(Scope.RUN, BOTTLENECK_CHANGES)
def bottleneck_changes(analysis: Analysis) -> tuple[float, ...]:
    """Count the changes in the steady window; NaN if no queue holds packets."""
    found = analysis.last_to_empty
    return (found.changes * 1e9 / found.busy_ns if found.busy_ns else math.nan,)
