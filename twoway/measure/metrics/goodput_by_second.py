"""Goodput in single seconds: the least and the most of a connection.

Seconds are whole, counted from the start of traffic, within the steady window, and the connection
has data to send in all of each. A run's series `goodput_by_second` has all of them.
"""

import math

from capture_analysis.definition import Definition

from twoway.measure.analysis import Analysis
from twoway.measure.connection_view import ConnectionView
from twoway.measure.metric import Scope, estimates

GOODPUT_LEAST = Definition("goodput_least", "Mbit/s", "least goodput in a second of steady traffic")
GOODPUT_MOST = Definition("goodput_most", "Mbit/s", "most goodput in a second of steady traffic")


@estimates(Scope.CONNECTION, GOODPUT_LEAST, GOODPUT_MOST)
def goodput_by_second(analysis: Analysis, view: ConnectionView) -> tuple[float, float]:
    """Return the extremes; NaN without a whole second."""
    seconds = analysis.seconds
    row = seconds.row(view.connection)
    steady = seconds.sending[row] & (seconds.begin_ns >= analysis.run.steady_ns)
    found = seconds.goodput_bit[row, steady] / 1e6
    return (float(found.min()), float(found.max())) if len(found) else (math.nan, math.nan)
