"""How much of a connection waits in its bottleneck."""

from twoway.measure.analysis import Analysis, ConnectionView
from twoway.measure.metric import Scope

SCOPE = Scope.CONNECTION
UNITS = {
    "queued_mean": "packets",
}


def measure(analysis: Analysis, view: ConnectionView) -> dict[str, float]:
    """Data packets, the one in transmission included, over the steady window."""
    return {"queued_mean": view.queued.mean(analysis.run.steady_ns, analysis.run.stop_ns)}
