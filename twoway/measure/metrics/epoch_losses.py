"""What an epoch of loss costs one connection (Zhang et al. 1991: its acceleration)."""

import math

from twoway.measure.analysis import Analysis, ConnectionView
from twoway.measure.metric import Scope

SCOPE = Scope.CONNECTION
UNITS = {
    "epoch_losses": "packets",
}


def measure(analysis: Analysis, view: ConnectionView) -> dict[str, float]:
    """Data packets per epoch of the run, those counted in which it loses none."""
    epochs = len(analysis.congestion_epochs.drops)
    lost = len(analysis.run.steady(analysis.lost(view)))
    return {"epoch_losses": lost / epochs if epochs else math.nan}
