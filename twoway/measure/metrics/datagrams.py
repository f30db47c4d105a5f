"""Loss, delay, jitter and order of the packets that a UDP flow sends in the steady window.

The rate is over the flow's own time in that window, pauses included. A packet's delay is the time
from its sender's capture to its receiver's. A packet that was in a queue when the captures ended
has neither a loss nor a delay.

    datagram_loss = packets lost / packets sent
    datagram_jitter = mean of RFC 3550's J, which follows |D| with a gain of 1/16; D is the
                      difference between the spacing of two consecutive arrivals and their spacing
                      when sent
"""

import math

import numpy as np
from capture_analysis.definition import Definition

from twoway.measure.analysis import Analysis
from twoway.measure.datagrams import DatagramView, jitter_ns
from twoway.measure.metric import Scope, estimates

DATAGRAM_RATE = Definition(
    "datagram_rate", "Mbit/s", "rate of a UDP flow's IP packets over its sending time"
)
DATAGRAM_LOSS = Definition(
    "datagram_loss", "1", "share of a UDP flow's packets that the network loses", most=1
)
DATAGRAM_DELAY = Definition("datagram_delay", "s", "mean one-way delay of a UDP flow's packets")
DATAGRAM_DELAY_P95 = Definition(
    "datagram_delay_p95", "s", "95th percentile of the one-way delays of a UDP flow's packets"
)
DATAGRAM_JITTER = Definition(
    "datagram_jitter", "s", "mean interarrival jitter of a UDP flow", "RFC 3550, section 6.4.1"
)

DATAGRAM_OVERTAKING = Definition(
    "datagram_overtaking",
    "1",
    "share of a UDP flow's packets that arrive after one that was sent later",
    "RFC 4737, section 4.1: reordered",
    most=1,
)


@estimates(
    Scope.DATAGRAMS,
    *(DATAGRAM_RATE, DATAGRAM_LOSS, DATAGRAM_DELAY, DATAGRAM_DELAY_P95, DATAGRAM_JITTER),
)
def datagrams(analysis: Analysis, view: DatagramView) -> tuple[float, float, float, float, float]:
    """Return rate, loss, mean and 95th percentile of the delay, and jitter; NaN where undefined."""
    run, sent_ns = analysis.run, view.sent.time_ns
    steady = (sent_ns >= run.steady_ns) & (sent_ns < run.stop_ns)
    lasts_ns = min(view.flow.stop_ns, run.stop_ns) - max(view.flow.start_ns, run.steady_ns)
    if lasts_ns <= 0:
        return (math.nan,) * 5
    rate_mbit = np.count_nonzero(steady) * view.flow.packet_bytes * 8e3 / lasts_ns
    known, arrived = steady & view.known, steady & (view.arrived_ns >= 0)
    loss = float(view.lost[known].mean()) if known.any() else math.nan
    if not arrived.any():
        return rate_mbit, loss, math.nan, math.nan, math.nan
    order = np.argsort(view.arrived_ns[arrived], kind="stable")
    left_ns, arrived_ns = sent_ns[arrived][order], view.arrived_ns[arrived][order]
    delay_s = (arrived_ns - left_ns) / 1e9
    jitter_s = float(jitter_ns(left_ns, arrived_ns).mean()) / 1e9
    return rate_mbit, loss, float(delay_s.mean()), float(np.quantile(delay_s, 0.95)), jitter_s


@estimates(Scope.DATAGRAMS, DATAGRAM_OVERTAKING)
def overtaking_share(analysis: Analysis, view: DatagramView) -> tuple[float]:
    """Return the share of the packets that arrived; NaN if none did."""
    run, sent_ns = analysis.run, view.sent.time_ns
    arrived = (sent_ns >= run.steady_ns) & (sent_ns < run.stop_ns) & (view.arrived_ns >= 0)
    came_ns = view.arrived_ns[arrived]
    if not len(came_ns):
        return (math.nan,)
    return (float((came_ns < np.maximum.accumulate(came_ns)).mean()),)
