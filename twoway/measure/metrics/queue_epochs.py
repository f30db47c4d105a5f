"""Congestion epochs of one queue: drops in each, data and ACKs apart.

Out of phase, one queue's epochs follow the other's so closely that, taken together, they never
end; those of one queue stay apart (Zhang et al. 1991, section 3.2). `epoch_drops_half_gap` is
`epoch_drops` with half the gap between epochs, and shows how much the gap matters.
"""

import math

from twoway.measure.analysis import Analysis, QueueView
from twoway.measure.metric import Scope

SCOPE = Scope.QUEUE
UNITS = {
    "queue_epochs": "1",
    "epoch_drops": "packets",
    "epoch_drops_ack": "packets",
    "epoch_drops_half_gap": "packets",
    "queue_epoch_period": "s",
}


def measure(analysis: Analysis, view: QueueView) -> dict[str, float]:
    """Describe the queue's epochs in the steady window.

    Epochs are separated by the longest round trip, or half of it (`epoch_drops_half_gap`).
    """
    gap_ns = analysis.longest_round_trip_ns
    epochs = analysis.queue_epochs(view, gap_ns)
    halved = analysis.queue_epochs(view, gap_ns // 2)
    steady = analysis.run.steady(analysis.drops(view))
    acks = len(steady) - len(steady.data())
    count = len(epochs.drops)
    return {
        "queue_epochs": count,
        "epoch_drops": epochs.drops.mean() if count else math.nan,
        "epoch_drops_ack": acks / count if count else math.nan,
        "epoch_drops_half_gap": halved.drops.mean() if count else math.nan,
        "queue_epoch_period": epochs.period_s(),
    }
