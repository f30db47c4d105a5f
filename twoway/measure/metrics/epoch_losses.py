"""A connection's losses per congestion epoch.

Zhang et al. (1991) call the number a connection's acceleration.
"""

import math

from twoway.measure.analysis import Analysis, ConnectionView
from twoway.measure.metric import Scope

SCOPE = Scope.CONNECTION
UNITS = {
    "epoch_losses": "packets",
}


def measure(analysis: Analysis, view: ConnectionView) -> dict[str, float]:
    """Divide the connection's lost data packets by all epochs of the run."""
    epochs = len(analysis.congestion_epochs.drops)
    lost = len(analysis.run.steady(analysis.lost(view)))
    return {"epoch_losses": lost / epochs if epochs else math.nan}
