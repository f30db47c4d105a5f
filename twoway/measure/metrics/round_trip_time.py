"""Round trips of a connection, from the capture at its sender."""

from capture_analysis.metrics.round_trip_time import RTT_SPREAD

from twoway.measure.analysis import Analysis
from twoway.measure.connection_view import ConnectionView
from twoway.measure.metric import Scope, estimates
from twoway.measure.round_trips import spread_ms


@estimates(Scope.CONNECTION, *RTT_SPREAD)
def round_trip_times(analysis: Analysis, view: ConnectionView) -> list[float]:
    """Measure the ACKs that arrive in the steady window."""
    run, found = analysis.run, view.round_trips
    steady = (found.acked_ns >= run.steady_ns) & (found.acked_ns < run.stop_ns)
    return spread_ms(found.rtt_ns[steady])
