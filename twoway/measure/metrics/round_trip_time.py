"""Round trips and retransmissions of a connection, from the capture at its sender."""

from capture_analysis.metrics.retransmissions import RETRANSMISSIONS
from capture_analysis.metrics.round_trip_time import RTT_MEDIAN, RTT_MIN, RTT_P95

from twoway.measure.analysis import Analysis, ConnectionView
from twoway.measure.metric import Scope, estimates
from twoway.measure.round_trips import round_trips, spread_ms


@estimates(Scope.CONNECTION, RTT_MIN, RTT_MEDIAN, RTT_P95, RETRANSMISSIONS)
def round_trip_times(analysis: Analysis, view: ConnectionView) -> tuple[float, ...]:
    """Measure the ACKs that arrive, and count the segments sent again, in the steady window."""
    run, found = analysis.run, round_trips(view.sent.data(), view.acks_in)
    steady = (found.acked_ns >= run.steady_ns) & (found.acked_ns < run.stop_ns)
    again = (found.again_ns >= run.steady_ns) & (found.again_ns < run.stop_ns)
    return (*spread_ms(found.rtt_ns[steady]), int(again.sum()))
