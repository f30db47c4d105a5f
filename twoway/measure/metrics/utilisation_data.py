"""The share of time in which a link transmits data, without ACKs.

Ge et al. (2011), section 4.2, call this a link's utilisation; headers of data packets count.
"""

from twoway.measure import throughput
from twoway.measure.analysis import Analysis, QueueView
from twoway.measure.metric import Scope

SCOPE = Scope.QUEUE
UNITS = {
    "utilisation_data": "1",
}


def measure(analysis: Analysis, view: QueueView) -> dict[str, float]:
    """Compute the share of the steady window."""
    run = analysis.run
    return {
        "utilisation_data": throughput.utilisation(
            view.passed, run.steady_ns, run.stop_ns, data_only=True
        )
    }
