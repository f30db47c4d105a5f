"""The share of dropped packets that carries data.

After Zhang et al. (1991), section 3.2.
"""

import math

from twoway.measure.analysis import Analysis
from twoway.measure.metric import Scope

SCOPE = Scope.RUN
UNITS = {
    "dropped_data_share": "1",
}


def measure(analysis: Analysis) -> dict[str, float]:
    """Divide dropped data by all drops, of all queues, steady window."""
    drops = [analysis.run.steady(analysis.drops(view)) for view in analysis.queues.values()]
    total, data = sum(map(len, drops)), sum(len(each.data()) for each in drops)
    return {"dropped_data_share": data / total if total else math.nan}
