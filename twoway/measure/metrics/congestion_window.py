"""A connection's congestion window, as the kernel reports it.

The window in flight (`window_peak`) differs: while a loss is being repaired, it reaches from the
lost segment to the newest, up to one and a half congestion windows.
"""

import math

from capture_analysis.definition import Definition

from twoway.measure.analysis import Analysis
from twoway.measure.connection_view import ConnectionView
from twoway.measure.metric import Scope, estimates

CONGESTION_WINDOW_MAX = Definition(
    "congestion_window_max", "segments", "largest congestion window in TCP_INFO"
)


@estimates(Scope.CONNECTION, CONGESTION_WINDOW_MAX)
def congestion_window(analysis: Analysis, view: ConnectionView) -> tuple[float, ...]:
    """Find the largest window of the samples in the steady window.

    The samples are `observe.tcp_info_ms` apart; NaN without one.
    """
    run, mine = analysis.run, view.connection
    time_ns, samples = analysis.samples_of(mine)
    steady = (time_ns >= run.steady_ns) & (time_ns < run.stop_ns)
    found = samples["cwnd"][steady]
    return (float(found.max()) if len(found) else math.nan,)
