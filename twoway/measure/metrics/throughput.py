"""Goodput, throughput, efficiency and fairness of connections.

Goodput counts each payload byte once, throughput all bytes of data packets in their size on the
link. Both are over the flow's own sending time within the steady window: from its start until it is
stopped or, for a transfer, until its last byte has arrived. A flow that sends nothing in the window
has neither, and does not count for fairness. Efficiency is goodput over that of a one-way
connection that keeps the link full (Kalampoukas, Varma, Ramakrishnan 1998). Fairness is Jain's
index, (sum x)^2 / (n sum x^2), of the n connections' goodputs x: 1 if all are equal, 1/n if one has
everything. A program that names its UDP port, such as a server of QUIC, is one of the n; its
goodput is the payload of its UDP, QUIC's headers included.
"""

import math

import numpy as np
from capture_analysis.definition import Definition
from capture_analysis.metrics.fairness import JAIN_INDEX, jain_index
from capture_analysis.metrics.goodput import GOODPUT
from capture_analysis.metrics.throughput import THROUGHPUT
from capture_analysis.metrics.utilisation import EFFICIENCY

from twoway.contract.network import ProgramRun
from twoway.measure import throughput
from twoway.measure.analysis import Analysis
from twoway.measure.connection_view import ConnectionView
from twoway.measure.metric import Scope, estimates

THROUGHPUT_SUM = Definition(
    "throughput_sum", "Mbit/s", "total throughput of all connections of both directions"
)


@estimates(Scope.CONNECTION, GOODPUT, THROUGHPUT, EFFICIENCY)
def goodput(analysis: Analysis, view: ConnectionView) -> tuple[float, ...]:
    """Measure goodput, throughput and efficiency at the receiver, while the connection sends."""
    goodput_bit, queue, data = analysis.goodput_bit(view), view.forward.queue, view.segments_in
    if math.isnan(goodput_bit):
        return math.nan, math.nan, math.nan
    return (
        goodput_bit / 1e6,
        view.rate_bit(data.time_ns, queue.link_bytes(data.frame_bytes)) / 1e6,
        throughput.efficiency(
            goodput_bit, view.arrived, queue, view.forward.rate_bit(*view.sending_ns)
        ),
    )


@estimates(Scope.SENDER, GOODPUT)
def goodput_of_program(analysis: Analysis, program: ProgramRun) -> tuple[float]:
    """Measure the payload of a program's UDP at its receivers, while the program runs."""
    return (analysis.sent_bit(program) / 1e6,)


@estimates(Scope.RUN, JAIN_INDEX)
def fairness(analysis: Analysis) -> tuple[float, ...]:
    """Compute Jain's index of those that send; NaN if no connection has goodput."""
    connections = [analysis.goodput_bit(view) for view in analysis.connections.values()]
    rates = np.array([*connections, *(analysis.sent_bit(each) for each in analysis.senders)])
    shares = rates[np.isfinite(rates)]
    return (jain_index(shares) if shares.any() else math.nan,)


@estimates(Scope.RUN, THROUGHPUT_SUM)
def throughput_sum(analysis: Analysis) -> tuple[float, ...]:
    """Add the throughputs of all connections."""
    run = analysis.run
    link_bytes = sum(
        throughput.link_bytes(run.select_steady(view.segments_in), view.forward.queue)
        for view in analysis.connections.values()
    )
    return (link_bytes * 8e3 / run.window_ns,)
