"""A connection's window: its sawtooth and peak, and the pipe that holds it.

A cycle of the sawtooth ends with the loss that ends congestion avoidance. Losses in slow start come
within a few round trips of another loss, after less than half of the longest interval, and end no
cycle. Only whole cycles count: a partial one at an end of the steady window would add a random
error.

    effective pipe = (propagation of data + time from ACK sent to ACK arrived) / transmission time

The propagation is that behind the bottleneck's queue, the transmission time that of a data packet.
ACKs that wait in a queue have the effect of a longer pipe (Zhang, Shenker, Clark 1991, section
4.2). If none waits, the effective pipe is the paper's 2P plus the transmission time of an ACK.
"""

import math

import numpy as np
from capture_analysis.columns import IntArray
from capture_analysis.congestion_epochs import congestion_epochs
from capture_analysis.definition import Definition

from twoway.measure import throughput
from twoway.measure.analysis import Analysis
from twoway.measure.connection_view import ConnectionView
from twoway.measure.flight import flights, most_in_flight, window_at_first
from twoway.measure.metric import Scope, estimates

SAWTOOTH_PERIOD = Definition(
    "sawtooth_period", "s", "mean time from one loss that ends congestion avoidance to the next"
)
SAWTOOTH_EFFICIENCY = Definition(
    "sawtooth_efficiency", "1", "efficiency over whole cycles of the sawtooth"
)
WINDOW_PEAK = Definition(
    "window_peak",
    "segments",
    "most full segments from the oldest unacknowledged to the newest sent",
)
EFFECTIVE_PIPE = Definition(
    "effective_pipe",
    "packets",
    "propagation behind the bottleneck plus the ACK's mean time back, in transmission "
    "times of a data packet",
    "Zhang, Shenker, Clark 1991",
)
FIRST_LOSS_WINDOW = Definition(
    "first_loss_window",
    "segments",
    "segments from the oldest unacknowledged to the first lost one, when that is sent",
    "Barakat, Altman 2000",
)
FLIGHT_PERCENTAGES = (60, 80, 90)
FLIGHT_TIMES = tuple(
    Definition(
        f"flight_time_{share}",
        "s",
        f"time from the end of warm-up until {share} % of the bandwidth-delay product is in flight",
        "draft-irtf-iccrg-tcpeval-01",
    )
    for share in FLIGHT_PERCENTAGES
)


@estimates(Scope.CONNECTION, SAWTOOTH_PERIOD, SAWTOOTH_EFFICIENCY, WINDOW_PEAK)
def sawtooth(analysis: Analysis, view: ConnectionView) -> tuple[float, ...]:
    """Measure the whole cycles in the steady window.

    Period and efficiency are NaN without a whole cycle; the peak is that of the steady window.
    """
    ends = cycle_losses_ns(analysis, view)
    period_s = efficiency = math.nan
    if len(ends) > 1:
        first, last = int(ends[0]), int(ends[-1])
        period_s = (last - first) / (len(ends) - 1) / 1e9
        payload = throughput.new_payload_bytes(view.segments_in, view.brought, first, last)
        goodput_bit = payload * 8e9 / (last - first)
        rate_bit = view.forward.rate_bit(first, last)
        efficiency = throughput.efficiency(goodput_bit, view.arrived, view.forward.queue, rate_bit)
    peak = most_in_flight(analysis.run, view)
    return period_s, efficiency, math.nan if peak is None else peak


@estimates(Scope.CONNECTION, FIRST_LOSS_WINDOW)
def first_loss_window(analysis: Analysis, view: ConnectionView) -> tuple[float, ...]:
    """Measure the window at the first loss after the start of traffic, in the warm-up, too."""
    lost = analysis.list_lost(view)
    window = window_at_first(lost, analysis.run, view) if len(lost) else None
    return (math.nan if window is None else window,)


@estimates(Scope.CONNECTION, EFFECTIVE_PIPE)
def effective_pipe(analysis: Analysis, view: ConnectionView) -> tuple[float, ...]:
    """Average the pipe over the ACKs of the steady window."""
    del analysis
    back_ns = view.acks.arrived_ns - view.acks.sent_ns
    if not len(back_ns) or not view.data_service_ns:
        return (math.nan,)
    trip_ns = view.forward.queue.delay_ns + float(back_ns.mean())
    return (trip_ns / view.data_service_ns,)


@estimates(Scope.CONNECTION, *FLIGHT_TIMES)
def flight_times(analysis: Analysis, view: ConnectionView) -> tuple[float, ...]:
    """Find when the flight first reaches each share of the pipe; NaN if it never does.

    The pipe, the bandwidth-delay product, is the propagation of both directions in transmission
    times of a data packet.
    """
    sent_ns, span, full = flights(analysis.run, view)
    delay_ns = view.forward.queue.delay_ns + view.reverse.queue.delay_ns
    if not full or not view.data_service_ns:
        return (math.nan,) * len(FLIGHT_TIMES)
    share = span / full * view.data_service_ns / max(delay_ns, 1)
    reached = [np.flatnonzero(share >= each / 100) for each in FLIGHT_PERCENTAGES]
    since = (sent_ns - analysis.run.steady_ns) / 1e9
    return tuple(float(since[each[0]]) if len(each) else math.nan for each in reached)


def cycle_losses_ns(analysis: Analysis, view: ConnectionView) -> IntArray:
    """Find the times of losses in the steady window that end a cycle."""
    run = analysis.run
    lost_ns = analysis.list_lost(view).time_ns
    epochs = congestion_epochs(lost_ns, np.zeros_like(lost_ns), analysis.longest_round_trip_ns)
    steady = (run.steady_ns, run.stop_ns)
    return cycle_ends(epochs.start_ns, view.connection.start_ns, steady)


def cycle_ends(loss_ns: IntArray, begun_ns: int, steady_ns: tuple[int, int]) -> IntArray:
    """Select the losses that end a cycle.

    Such a loss comes after at least half of the longest interval between losses.

    Args:
        loss_ns: shape (n,), when each congestion epoch started; sorted.
        begun_ns: start of the connection.
        steady_ns: start and end of the window in which losses are selected.
    """
    since_ns = np.diff(loss_ns, prepend=begun_ns)
    steady = (loss_ns >= steady_ns[0]) & (loss_ns < steady_ns[1])
    longest_ns = since_ns[steady].max(initial=0)
    return np.asarray(loss_ns[steady & (2 * since_ns >= longest_ns)])
