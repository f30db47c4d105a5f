"""The figures of a run's report."""

from collections.abc import Sequence

import numpy as np
from capture_analysis import ack_compression
from capture_analysis.columns import IntArray
from capture_analysis.pictures.ack_figures import bunch_bars
from capture_analysis.pictures.figure import Figure, FloatArray, Line

from twoway.contract.metrics import Metrics
from twoway.measure import channel
from twoway.measure.analysis import Analysis
from twoway.measure.connection_view import ConnectionView
from twoway.measure.queue_view import QueueView
from twoway.measure.queues import Occupancy, limit_at
from twoway.measure.throughput import carried_bit, full_payload_share, unwrap
from twoway.report.connections import distributions, shown_names

# The connections to draw, by name.
Shown = dict[str, ConnectionView]

# Length of detailed views, in congestion epochs; without those, in cycles of busy periods; without
# those, in seconds.
DETAIL_EPOCHS = 4
DETAIL_CYCLES = 6
DETAIL_FALLBACK_S = 2.0
# The same for runs with many connections, in round trips with all queues full.
DETAIL_ROUND_TRIPS = 10
# Intervals of the whole-run view of a queue, with a highest and a lowest level each: about one per
# pixel column of a wide screen.
OVERVIEW_BINS = 1500
# Approximate number of intervals over which a run's goodput is averaged.
GOODPUT_INTERVALS = 200


def all_figures(
    analysis: Analysis, metrics: Metrics, wanted: Sequence[str] = (), *, alone: bool = False
) -> list[Figure]:
    """Draw every figure of a run's report.

    Args:
        analysis: the run.
        metrics: its metrics.
        wanted: connections to draw besides those that the report shows.
        alone: True to draw `wanted` alone.
    """
    names = shown_names(analysis.run.connections, metrics)
    every = len(names) == len(analysis.connections)
    drawn = wanted if alone else dict.fromkeys([*names, *wanted])
    shown = {name: analysis.connections[name] for name in drawn}
    start_s, stop_s = _detail(analysis) if every else _round_trips(analysis)
    return [
        *_channels(analysis),
        _queues(analysis, start_s, stop_s),
        *([] if every else distributions(analysis, metrics)),
        _sequence_numbers(analysis, shown, start_s, stop_s),
        _ack_spacing(analysis, shown, start_s, stop_s),
        _bunches(shown),
        _queue_overview(analysis),
        _goodput(analysis, shown),
        *_sockets(analysis, shown, start_s, stop_s),
    ]


def headline_figures(analysis: Analysis) -> list[Figure]:
    """Draw a run's main figures: those of its DTM channels, else those of its queues."""
    return _channels(analysis) or [_queues(analysis, *_detail(analysis))]


def _detail(analysis: Analysis) -> tuple[float, float]:
    """Choose the window of detailed views, s after traffic's start."""
    run = analysis.run
    cycle_s = _cycle_s(analysis)
    epochs_ns = analysis.congestion_epochs.select_window(run.steady_ns, run.stop_ns).start_ns
    length = DETAIL_CYCLES * cycle_s if cycle_s else DETAIL_FALLBACK_S
    if len(epochs_ns) > DETAIL_EPOCHS:
        length = float(DETAIL_EPOCHS * np.diff(epochs_ns).mean() / 1e9)
    start = (run.steady_ns - run.start_ns) / 1e9
    return start, min(start + length, (run.stop_ns - run.start_ns) / 1e9)


def _round_trips(analysis: Analysis) -> tuple[float, float]:
    """Choose the window of detailed views of many connections, s after traffic's start.

    The busy periods of such runs are too short to hold a packet of each connection.
    """
    run = analysis.run
    stop_ns = run.steady_ns + DETAIL_ROUND_TRIPS * analysis.longest_round_trip_ns
    return run.seconds(run.steady_ns), run.seconds(min(stop_ns, run.stop_ns))


def _cycle_s(analysis: Analysis) -> float | None:
    """Find the longest busy-period cycle of all queues, s, if any."""
    cycles = [analysis.busy(view).cycle_s() for view in analysis.queues.values()]
    return max((c for c in cycles if np.isfinite(c)), default=None)


def _queues(analysis: Analysis, start_s: float, stop_s: float) -> Figure:
    lines = []
    for colour, (direction, view) in enumerate(analysis.queues.items()):
        x, y = _clip(analysis, view.all_packets, start_s, stop_s)
        lines.append(Line(f"{direction} queue", x, y, "steps", colour))
        lines += _drops(analysis, direction, view, colour, (start_s, stop_s))
        for metric in (f"queue_peak.{direction}", f"queue_peak_data.{direction}"):
            lines += [
                Line(
                    f"{direction} peak, {source}",
                    np.array([start_s, stop_s]),
                    np.full(2, value),
                    "dashed",
                    colour,
                )
                for source, value in analysis.run.manifest.experiment.said_of(metric)
            ]
    return Figure(
        "queues",
        "Bottleneck queues",
        "Packets in each router's queue, the one in service included, from the captures on both "
        "sides of it; each jump up is a bunch of acknowledgements that released a burst of data, "
        "each cross a dropped packet.",
        "time, s",
        "packets",
        lines,
    )


def _drops(
    analysis: Analysis, direction: str, view: QueueView, colour: int, window_s: tuple[float, float]
) -> list[Line]:
    """Draw crosses where a queue dropped packets, at its limit."""
    time_ns = analysis.drops(view).time_ns
    x, limit = analysis.run.seconds(time_ns), limit_at(view.queue, time_ns).astype(np.float64)
    shown = (x >= window_s[0]) & (x < window_s[1])
    x, limit = x[shown], limit[shown]
    return [Line(f"{direction} drops", x, limit, "crosses", colour)] if len(x) else []


def _clip(
    analysis: Analysis, occupancy: Occupancy, start_s: float, stop_s: float
) -> tuple[FloatArray, FloatArray]:
    base = analysis.run.start_ns
    start_ns, stop_ns = base + int(start_s * 1e9), base + int(stop_s * 1e9)
    part = occupancy.cut_out(start_ns, stop_ns)
    # Draw only the last of several steps at the same time.
    last = np.diff(part.time_ns, append=np.iinfo(np.int64).max) > 0
    time_ns, packets = part.time_ns[last], part.packets[last]
    entry = occupancy.count_at(np.array([start_ns]))
    x = np.concatenate(([start_s], analysis.run.seconds(time_ns), [stop_s]))
    y = np.concatenate((entry, packets, packets[-1:] if len(packets) else entry))
    return x, y.astype(np.float64)


def _sequence_numbers(analysis: Analysis, shown: Shown, start_s: float, stop_s: float) -> Figure:
    lines = []
    for colour, (name, view) in enumerate(shown.items()):
        sent = view.sent.data()
        x = analysis.run.seconds(sent.time_ns)
        inside = (x >= start_s) & (x < stop_s)
        if not inside.any():
            continue
        y = unwrap(sent.seq)[inside] / 1e6
        y = y - y[0]
        lines.append(Line(f"{name}: sent", x[inside], y, "points", colour))
        lines += _slopes(analysis, view, start_s, stop_s, colour)
    return Figure(
        "sequence",
        "Progress of each connection",
        "Sequence numbers as the sender emits them. A full link would follow the dashed line; "
        "the step-like growth below it is the throughput lost to two-way traffic.",
        "time, s",
        "sequence number, MB",
        lines,
    )


def _slopes(
    analysis: Analysis, view: ConnectionView, start_s: float, stop_s: float, colour: int
) -> list[Line]:
    name, queue = view.connection.name, view.forward.queue
    full = queue.rate_bit * full_payload_share(view.arrived, queue) / 8e6
    x = np.array([start_s, stop_s])
    lines = [Line(f"{name}: full link, one direction", x, (x - start_s) * full, "dashed", colour)]
    for source, value in analysis.run.manifest.experiment.said_of(f"efficiency.{name}"):
        if source == "theory":
            predicted = (x - start_s) * full * value
            lines.append(Line(f"{name}: predicted", x, predicted, "line", colour))
    return lines


def _ack_spacing(analysis: Analysis, shown: Shown, start_s: float, stop_s: float) -> Figure:
    lines = []
    for colour, (name, view) in enumerate(shown.items()):
        x = analysis.run.seconds(view.acks.arrived_ns[1:])
        inside = (x >= start_s) & (x < stop_s)
        for where, times, shade in (
            ("as sent", view.acks.sent_ns, 2 * colour),
            ("on arrival", view.acks.arrived_ns, 2 * colour + 1),
        ):
            gap_ms = np.diff(times)[inside] / 1e6
            lines.append(
                Line(f"{name}'s acks {where}", x[inside], np.maximum(gap_ms, 1e-6), "points", shade)
            )
    return Figure(
        "spacing",
        "Ack spacing at the two vantage points",
        "Time between consecutive acknowledgements where they are sent and where they arrive. "
        "Compressed ones fall from a data packet's transmission time to an acknowledgement's.",
        "time, s",
        "spacing, ms",
        lines,
        log_y=True,
    )


def _bunches(shown: Shown) -> Figure:
    lines = []
    for colour, (name, view) in enumerate(shown.items()):
        for where, times, shade in (
            ("as sent", view.acks.sent_ns, 2 * colour),
            ("on arrival", view.acks.arrived_ns, 2 * colour + 1),
        ):
            sizes = ack_compression.bunch_sizes(times, view.ack_service_ns)
            lines.append(bunch_bars(f"{name}'s acks {where}", sizes, shade))
    return Figure(
        "bunches",
        "Ack bunch sizes",
        "Share of the acknowledgements that travel in a bunch of each size; bunched means spaced "
        "by at most two acknowledgement transmission times.",
        "acks in a bunch",
        "share of acks, %",
        lines,
    )


def _queue_overview(analysis: Analysis) -> Figure:
    run = analysis.run
    lines = []
    edges = np.linspace(run.start_ns, run.stop_ns, OVERVIEW_BINS + 1).astype(np.int64)
    x = np.repeat(analysis.run.seconds((edges[:-1] + edges[1:]) // 2), 2)
    for colour, (direction, view) in enumerate(analysis.queues.items()):
        lowest, highest = view.all_packets.range(edges[:-1], edges[1:])
        y = np.stack((lowest, highest), axis=1).ravel().astype(np.float64)
        lines.append(Line(f"{direction} queue, lowest and highest", x, y, "line", colour))
        lines += _drops(analysis, direction, view, colour, (0, np.inf))
    return Figure(
        "overview",
        "Queues over the whole run",
        "Lowest and highest occupancy in each of 1500 intervals, warm-up included.",
        "time, s",
        "packets",
        lines,
    )


def _goodput(analysis: Analysis, shown: Shown) -> Figure:
    edges = goodput_edges_ns(analysis)
    interval_ms = (edges[1] - edges[0]) / 1e6
    x = analysis.run.seconds(edges)
    lines = []
    for colour, (name, view) in enumerate(shown.items()):
        mbit = goodput_mbit(view, edges)
        lines.append(Line(name, x, np.append(mbit, mbit[-1]), "steps", colour))
        for source, expected in _expected_goodput(analysis, view):
            y = np.full(2, expected)
            lines.append(Line(f"{name}: {source}", x[[0, -1]], y, "dashed", colour))
    return Figure(
        "goodput",
        "Goodput over the whole run",
        f"New payload of each connection in intervals of {interval_ms:.4g} ms, whole "
        "cycles of the queues if they have any, while the slowest link carries it; dashed: the "
        "expected value in the steady window.",
        "time, s",
        "Mbit/s",
        lines,
    )


def goodput_mbit(view: ConnectionView, edges_ns: IntArray) -> FloatArray:
    """Compute a connection's goodput in each interval, Mbit/s; shape (k,)."""
    transmission_ns = view.forward.transmission_ns(view.segments_in)
    return carried_bit(view.segments_in, view.brought, transmission_ns, edges_ns) / 1e6


def goodput_edges_ns(analysis: Analysis) -> IntArray:
    """Cut the run into intervals of about 1/200 of it, in whole cycles of the queues.

    Parts of a cycle would look like changes of rate (decision 0028).

    Returns: shape (k+1,), the intervals' ends, ns on the plan's clock.
    """
    run = analysis.run
    interval_s = (run.stop_ns - run.start_ns) / 1e9 / GOODPUT_INTERVALS
    cycle_s = _cycle_s(analysis)
    if cycle_s:
        interval_s = max(round(interval_s / cycle_s), 1) * cycle_s
    return np.arange(run.start_ns, run.stop_ns + 1, round(interval_s * 1e9))


def _expected_goodput(analysis: Analysis, view: ConnectionView) -> list[tuple[str, float]]:
    """List a connection's expected goodputs: source and Mbit/s of payload."""
    name, queue = view.connection.name, view.forward.queue
    share = full_payload_share(view.arrived, queue)
    payload_per = {"goodput": 1, "throughput": share, "efficiency": share * queue.rate_bit / 1e6}
    return [
        (source, value * factor)
        for family, factor in payload_per.items()
        for source, value in analysis.run.manifest.experiment.said_of(f"{family}.{name}")
    ]


def _channels(analysis: Analysis) -> list[Figure]:
    """Draw rate and slots of each DTM channel with the rate allocator."""
    figures = []
    for direction, view in analysis.queues.items():
        if view.slots and view.slots.options.rate:
            figures += _rate_figures(analysis, direction, view, view.slots)
    return figures


def _rate_figures(
    analysis: Analysis, direction: str, view: QueueView, slots: channel.Slots
) -> list[Figure]:
    stop_ns = analysis.run.stop_ns
    made = channel.estimates(view.queue, slots, view.passed, stop_ns)
    x = analysis.run.seconds(made.time_ns)
    changes = slots.changes(slots.start_ns, stop_ns)
    times = np.concatenate(([slots.start_ns], changes, [stop_ns]))
    held = slots.count_at(times).astype(np.float64)
    options = slots.options
    slot_mbit = options.slot_bit / 1e6
    rate = options.rate
    assert rate
    wanted = made.estimate_bit / options.slot_bit + rate.margin_slots + rate.corridor_slots / 2
    return [
        Figure(
            f"rate-{direction}",
            f"Rate of the traffic and capacity of {direction}",
            f"The arrivals in each {rate.sample_ms:g} ms, the estimate that follows it, and "
            "the capacity of the slots that the channel had.",
            "time, s",
            "Mbit/s",
            [
                Line("measured", x, made.measured_bit / 1e6, "steps", 0),
                Line("estimate", x, made.estimate_bit / 1e6, "line", 1),
                Line("capacity", analysis.run.seconds(times), held * slot_mbit, "steps", 2),
            ],
        ),
        Figure(
            f"slots-{direction}",
            f"Slots of {direction}",
            f"Slots of {options.slot_kbit} kbit/s, and the slots that the estimate would "
            "ask for at each sample: estimate, margin and half the corridor, before "
            "rounding. They change at most "
            f"once in {options.change_s:g} s, and not while the estimate stays in its corridor.",
            "time, s",
            "slots",
            [
                Line("wanted", x, wanted, "line", 1),
                Line("allocated", analysis.run.seconds(times), held, "steps", 2),
            ],
        ),
    ]


def _sockets(analysis: Analysis, shown: Shown, start_s: float, stop_s: float) -> list[Figure]:
    """Draw windows and round-trip times; if there are drops, windows in detail."""
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
