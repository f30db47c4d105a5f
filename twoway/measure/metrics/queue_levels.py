"""The length of a queue, the packet in transmission included."""

from twoway.measure.analysis import Analysis, QueueView
from twoway.measure.metric import Scope

SCOPE = Scope.QUEUE
UNITS = {
    "queue_peak": "packets",
    "queue_peak_data": "packets",
    "queue_mean": "packets",
}


def measure(analysis: Analysis, view: QueueView) -> dict[str, float]:
    """Return peak and mean in the steady window.

    `queue_peak_data` counts no ACKs.
    """
    steady = (analysis.run.steady_ns, analysis.run.stop_ns)
    return {
        "queue_peak": view.all_packets.peak(*steady),
        "queue_peak_data": view.data_packets.peak(*steady),
        "queue_mean": view.all_packets.mean(*steady),
    }
