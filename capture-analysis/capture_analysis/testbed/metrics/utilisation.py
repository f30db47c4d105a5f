"""Share of the time in which a link transmits, acknowledgements included."""

from capture_analysis.testbed import throughput
from capture_analysis.testbed.analysis import Analysis, QueueView
from capture_analysis.testbed.metric import Scope

SCOPE = Scope.QUEUE
UNITS = {
    "utilisation": "1",
}


def measure(analysis: Analysis, view: QueueView) -> dict[str, float]:
    """Of the steady window."""
    run = analysis.run
    return {"utilisation": throughput.utilisation(view.passed, run.steady_ns, run.stop_ns)}
