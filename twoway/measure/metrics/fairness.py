"""How evenly connections share: Jain's index (Jain, Chiu, Hawe 1984)."""

import math

import numpy as np

from twoway.measure.analysis import Analysis
from twoway.measure.metric import Scope

SCOPE = Scope.RUN
UNITS = {
    "jain_index": "1",
}


def measure(analysis: Analysis) -> dict[str, float]:
    """Compute (sum x)^2 / (n sum x^2) of the n connections' goodputs x.

    1 if all are equal, 1/n if one connection has everything.
    """
    goodput = np.array([analysis.goodput_bit(view) for view in analysis.connections.values()])
    squares = len(goodput) * (goodput**2).sum()
    return {"jain_index": goodput.sum() ** 2 / squares if squares else math.nan}
