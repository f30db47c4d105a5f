"""Windows that rise and fall together or in turn, and the law of their growth.

A connection's window is its flight: segments from the oldest unacknowledged to the newest sent, at
the sender. In phase the correlation of two windows is above 0, out of phase below it (Zhang,
Shenker, Clark 1991, section 4.3).

    window_growth = slope of log(window) over log(t), t since the window was smallest

at tenths of each cycle, averaged over cycles: 1/2 if the window grows as the square root of time
(section 4.3.1), 1 if it grows linearly from zero, about 0.3 if it grows linearly from half its
peak.
"""

import math
from itertools import combinations, pairwise

import numpy as np
from capture_analysis.columns import IntArray
from capture_analysis.definition import Definition

from twoway.measure.analysis import Analysis
from twoway.measure.connection_view import ConnectionView
from twoway.measure.metric import Scope, estimates
from twoway.measure.metrics.window import cycle_losses_ns
from twoway.measure.queues import Occupancy

_ZHANG = "Zhang, Shenker, Clark 1991"
SAME_WAY = Definition(
    "window_correlation_same_way",
    "1",
    "mean correlation over time of the windows of two lasting connections of one direction",
    _ZHANG,
    least=-1,
    most=1,
)
OPPOSITE = Definition(
    "window_correlation_opposite",
    "1",
    "mean correlation over time of the windows of two lasting connections of opposite directions",
    _ZHANG,
    least=-1,
    most=1,
)
GROWTH = Definition(
    "window_growth",
    "1",
    "slope of a window's logarithm over that of time in a cycle; 1/2 for a square root",
    _ZHANG,
)
# The most connections for which all pairs are correlated.
MOST = 50
# Tenths of a cycle at which the window is looked up.
TENTHS = np.arange(1, 11) / 10


@estimates(Scope.RUN, SAME_WAY, OPPOSITE)
def phase(analysis: Analysis) -> tuple[float, ...]:
    """Average the correlation over pairs of connections; NaN without such a pair.

    Transfers that end are left out: hundreds of them hardly ever overlap. If there are more than
    MOST lasting connections, MOST of them are paired, evenly chosen: the pairs grow with the square
    of the number.
    """
    run = analysis.run
    lasting = [v for v in analysis.connections.values() if v.connection.transfer_bytes is None]
    chosen = np.linspace(0, len(lasting) - 1, min(len(lasting), MOST)).round().astype(int)
    windows = [(lasting[at].connection.direction, lasting[at].window) for at in chosen]
    found: dict[bool, list[float]] = {True: [], False: []}
    for (here, one), (there, two) in combinations(windows, 2):
        sums = one.sum_beside(two, run.steady_ns, run.stop_ns)
        found[here == there].append(sums.correlation())
    same, opposite = (float(np.mean(f)) if f else math.nan for f in (found[True], found[False]))
    return same, opposite


@estimates(Scope.CONNECTION, GROWTH)
def growth(analysis: Analysis, view: ConnectionView) -> tuple[float, ...]:
    """Average the exponent over the whole cycles of the steady window; NaN without one."""
    return (growth_exponent(view.window, cycle_losses_ns(analysis, view)),)


def growth_exponent(flight: Occupancy, losses_ns: IntArray) -> float:
    """Fit the exponent of growth between losses; NaN without a whole cycle.

    Args:
        flight: the window over time.
        losses_ns: shape (n,), the losses that end cycles, sorted.
    """
    logs = []
    for start_ns, stop_ns in pairwise(losses_ns.tolist()):
        cut = flight.cut_out(start_ns, stop_ns)
        least = np.flatnonzero(cut.packets == cut.packets.min(initial=1 << 30))
        if not len(least):
            continue
        begun_ns = int(cut.time_ns[least[-1]])
        at_ns = begun_ns + (TENTHS * (stop_ns - 1 - begun_ns)).astype(np.int64)
        logs.append(np.log(np.maximum(flight.count_at(at_ns), 1)))
    if not logs:
        return math.nan
    return float(np.polyfit(np.log(TENTHS), np.mean(logs, axis=0), 1)[0])
