"""A connection's data in its bottleneck queue."""

from twoway.measure.analysis import Analysis, ConnectionView
from twoway.measure.metric import Scope

SCOPE = Scope.CONNECTION
UNITS = {
    "queued_mean": "packets",
}


def measure(analysis: Analysis, view: ConnectionView) -> dict[str, float]:
    """Average the connection's queued data packets over the steady window.

    The packet in transmission counts.
    """
    return {"queued_mean": view.queued.mean(analysis.run.steady_ns, analysis.run.stop_ns)}
