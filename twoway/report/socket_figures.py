"""Figures of TCP_INFO: congestion windows and round-trip times."""

import numpy as np
from capture_analysis.columns import IntArray
from capture_analysis.pictures.figure import Figure, FloatArray, Line

from twoway.measure.analysis import Analysis
from twoway.measure.connection_view import ConnectionView


def socket_figures(
    analysis: Analysis, shown: dict[str, ConnectionView], start_s: float, stop_s: float
) -> list[Figure]:
    """Draw windows and round-trip times; if there are drops, windows in detail.

    Args:
        analysis: the run.
        shown: the connections to draw, by name.
        start_s: start of the detailed view, s after the traffic's start.
        stop_s: end of the detailed view.
    """
    windows, round_trips = [], []
    for colour, view in enumerate(shown.values()):
        connection = view.connection
        at_ns, samples = analysis.samples_of(connection)
        of = {name: column.astype(np.float64) for name, column in samples.items()}
        windows += _windows(analysis, view, colour, at_ns, of)
        x, rtt_ms = analysis.run.seconds(at_ns), of["rtt_us"] / 1e3
        round_trips.append(Line(f"{connection.name}: smoothed RTT", x, rtt_ms, "line", colour))
    whole = Figure(
        "cwnd",
        "Congestion windows",
        "As the kernel reports them (TCP_INFO); a cross where a queue dropped a segment of the "
        "connection.",
        "time, s",
        "segments",
        windows,
    )
    rtt = Figure(
        "rtt",
        "Round-trip times",
        "The kernel's smoothed estimate (TCP_INFO).",
        "time, s",
        "ms",
        round_trips,
    )
    inside = [_clipped(line, start_s, stop_s) for line in windows]
    if not any(line.style == "crosses" and len(line.x) for line in inside):
        return [whole, rtt]
    detail = Figure(
        "cwnd-detail",
        "Congestion windows in detail",
        "The part that the queues' figure shows: each cross is a dropped segment, and the window "
        "falls when its sender hears of it.",
        "time, s",
        "segments",
        [line for line in inside if len(line.x)],
    )
    return [detail, whole, rtt]


def _windows(
    analysis: Analysis,
    view: ConnectionView,
    colour: int,
    time_ns: IntArray,
    columns: dict[str, FloatArray],
) -> list[Line]:
    name, x = view.connection.name, analysis.run.seconds(time_ns)
    cwnd, threshold = columns["cwnd"], columns["ssthresh"]
    lines = [Line(f"{name}: cwnd", x, cwnd, "steps", colour)]
    lost_ns = analysis.list_lost(view).time_ns
    last = np.searchsorted(time_ns, lost_ns, side="right") - 1
    seen = last >= 0
    if seen.any():
        at = analysis.run.seconds(lost_ns[seen])
        lines.append(Line(f"{name}: segments dropped", at, cwnd[last[seen]], "crosses", colour))
    known = threshold >= 0
    if known.any():
        lines.append(Line(f"{name}: ssthresh", x[known], threshold[known], "dashed", colour))
    return lines


def _clipped(line: Line, start_s: float, stop_s: float) -> Line:
    inside = (line.x >= start_s) & (line.x < stop_s)
    return Line(line.name, line.x[inside], line.y[inside], line.style, line.colour)
