"""The share of time in which a link transmits, acknowledgements included."""

from twoway.measure import throughput
from twoway.measure.analysis import Analysis, QueueView
from twoway.measure.metric import Scope

SCOPE = Scope.QUEUE
UNITS = {
    "utilisation": "1",
}


def measure(analysis: Analysis, view: QueueView) -> dict[str, float]:
    """Compute the share of the steady window."""
    run = analysis.run
    return {"utilisation": throughput.utilisation(view.passed, run.steady_ns, run.stop_ns)}
