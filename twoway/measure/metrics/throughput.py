"""Goodput, throughput and efficiency of a connection.

Goodput counts each payload byte once, throughput all bytes of data packets on the link. Efficiency
is goodput over that of a one-way connection that keeps the link full.
"""

from twoway.measure import throughput
from twoway.measure.analysis import Analysis, ConnectionView
from twoway.measure.metric import Scope

SCOPE = Scope.CONNECTION
UNITS = {
    "goodput": "Mbit/s",
    "throughput": "Mbit/s",
    "efficiency": "1",
}


def measure(analysis: Analysis, view: ConnectionView) -> dict[str, float]:
    """Measure at the receiver, in the steady window."""
    run, goodput = analysis.run, analysis.goodput_bit(view)
    arrived = run.steady(view.arrived.data())
    link_bytes = throughput.link_bytes(arrived, view.forward.queue)
    return {
        "goodput": goodput / 1e6,
        "throughput": link_bytes * 8e3 / run.window_ns,
        "efficiency": throughput.efficiency(
            goodput,
            view.arrived,
            view.forward.queue,
            view.forward.rate_bit(run.steady_ns, run.stop_ns),
        ),
    }
