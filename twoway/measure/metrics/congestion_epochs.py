"""Congestion epochs: period, packets and victims.

After Zhang et al. (1991), section 2.1.
"""

import math

from twoway.measure.analysis import Analysis
from twoway.measure.metric import Scope

SCOPE = Scope.RUN
UNITS = {
    "congestion_epochs": "1",
    "drops_per_epoch": "packets",
    "single_victim_epochs": "1",
    "alternating_victims": "1",
    "epoch_period": "s",
}


def measure(analysis: Analysis) -> dict[str, float]:
    """Describe the epochs of the steady window.

    The share of single victims is of epochs, that of alternating victims of pairs of epochs.
    """
    epochs = analysis.congestion_epochs
    drops = epochs.drops
    return {
        "congestion_epochs": len(drops),
        "drops_per_epoch": drops.mean() if len(drops) else math.nan,
        "single_victim_epochs": epochs.single_victim_share(),
        "alternating_victims": epochs.alternating_share(),
        "epoch_period": epochs.period_s(),
    }
