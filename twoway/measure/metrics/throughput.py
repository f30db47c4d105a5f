"""What a connection gets: payload once, bytes on the link, share of a one-way full link."""

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
    """Of the steady window, at the receiver."""
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
