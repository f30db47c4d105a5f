"""Fidelity checks: tests of the testbed by the run's own captures.

Each check is one row: its name, the value, the bound and the verdict. In virtual time bounds are
exact. On a clock that runs while the host works, the bounds of times follow from the measured
lateness of the host's timers, and their texts begin with "real time". Such a bound belongs to the
run; if it is larger than the resolution that the experiment needs, the check cannot be told.
"""

from collections.abc import Iterable, Iterator

import numpy as np
from capture_analysis import ack_compression

from twoway.contract.guest_files import DatagramSource, StreamSink, StreamSource
from twoway.contract.judge import Verdict
from twoway.contract.metrics import FidelityRow
from twoway.contract.network import ETHERNET_BYTES
from twoway.links.element import ManagedQueue
from twoway.measure import checks, real_time
from twoway.measure.analysis import Analysis
from twoway.measure.connection_view import ConnectionView
from twoway.measure.flight import most_in_flight
from twoway.measure.paws_rejections import REASONS
from twoway.measure.queue_view import QueueView
from twoway.measure.throughput import before_reset, in_order_bytes, utilisation

# A queue's times must be known to this share of a full segment's transmission time, so that two
# packets are not confused.
RESOLVED_SHARE = 0.5
HALF_A_SEGMENT = "half of a segment's transmission time"
# Largest share of a source's time without data or window, if the experiment does not ask for that.
LIMITED_SHARE = 0.01
# A link that is busy for less than this share of the time could have carried waiting data.
IDLE_LINK = 0.5


def fidelity(analysis: Analysis) -> list[FidelityRow]:
    """Carry out all fidelity checks of a run."""
    hosts = analysis.run.manifest.experiment.hosts.values()
    wire = not any(host.gso or host.gro for host in hosts)
    rows = [*([_frames(analysis)] if wire else []), _capture_drops(analysis)]
    error = None if analysis.run.exact_clock else real_time.ClockError(analysis)
    if error:
        rows += real_time.checks(analysis, error)
    set_up, found = analysis.run.set_up, analysis.run.routers_set_up
    for of_run in checks.checks_of_links(checks.RunCheck):
        rows += of_run(analysis)
    rerouted = any(queue.rerouted for queue in analysis.run.queues)
    if set_up or rerouted:
        rows = _unproven(rows)
    for direction, queue in analysis.queues.items():
        mine = [
            *_service_times(analysis, direction, queue, error),
            _kernel_queue(analysis, direction, queue, error),
            _kernel_drops(analysis, direction, queue),
        ]
        for of_queue in checks.checks_of_links(checks.QueueCheck):
            behind = of_queue(analysis, direction, queue, error)
            mine += _unproven(behind) if rerouted else behind
        changed = _changed(analysis, direction)
        rows += _unproven(mine) if changed or queue.queue.node in set_up else mine
        rows += changed
        found |= bool(changed)
    for name, connection in analysis.connections.items():
        mine = [
            *_generator_bytes(analysis, name, connection),
            *_ack_checks(analysis, name, connection),
            *_window_check(analysis, name, connection),
            *_limits(analysis, name, connection),
            *_idling(analysis, name, connection),
        ]
        ends = connection.connection.from_, connection.connection.to
        rows += _unproven(mine) if found or not set_up.isdisjoint(ends) else mine
    rows += [_datagrams_sent(analysis, name) for name in analysis.datagrams]
    return [*rows, *_acks_of_hosts(analysis), *_rejections(analysis)]


def _unproven(rows: Iterable[FidelityRow]) -> list[FidelityRow]:
    """Let no check fail the run that the experiment's commands may contradict."""
    return [
        row.model_copy(update={"verdict": Verdict.NOT_PROVEN})
        if row.verdict is Verdict.FAIL
        else row
        for row in rows
    ]


def _changed(analysis: Analysis, direction: str) -> list[FidelityRow]:
    """Count the packets that a router made, cut or dropped between its captures and a queue."""
    counts = {
        "the wait of packets that its router made": len(analysis.made.get(direction, ())),
        "the fate of packets that came to its router alone": analysis.stopped.get(direction, 0),
    }
    return [
        FidelityRow(
            check=f"{direction}: {what}", value=count, bound="0", verdict=Verdict.NOT_PROVEN
        )
        for what, count in counts.items()
        if count
    ]


def _untold(what: str, value: float, bound: str) -> FidelityRow:
    return FidelityRow(check=what, value=value, bound=bound, verdict=Verdict.CANNOT_TELL)


def _resolved_ns(analysis: Analysis, view: QueueView) -> float:
    """Return the required accuracy of a queue's times, ns."""
    return RESOLVED_SHARE * int(view.queue.service_ns(_largest_frame(analysis)))


def _largest_frame(analysis: Analysis) -> int:
    return analysis.run.manifest.experiment.stack.mtu_bytes + ETHERNET_BYTES


def _frames(analysis: Analysis) -> FidelityRow:
    """Check that no frame exceeds the MTU, which shows that offloads are off."""
    most = _largest_frame(analysis)
    largest = analysis.run.largest_frame_bytes
    return checks.row("largest captured frame, bytes", largest, f"at most {most}", largest <= most)


def _capture_drops(analysis: Analysis) -> FidelityRow:
    dropped = sum(analysis.run.manifest.capture_drops.values())
    return checks.row("packets dropped by the capture", dropped, "0", dropped == 0)


def _service_times(
    analysis: Analysis, direction: str, view: QueueView, error: real_time.ClockError | None
) -> list[FidelityRow]:
    """Check the times at which packets leave a queue.

    The tolerance is 1 ns, because netem cuts each transmission time to whole ns; after an idle time
    HTB may send a byte too early. After the end of traffic, sinks may answer late data with resets.
    Resets look alike, so it cannot be decided which of them a queue dropped. A queue that holds
    packets while its link is free may be late, and so may the other end of a shared medium.
    """
    holding = _holds_packets(analysis, view)
    if holding and (error or view.holds):
        return []
    if error:
        off_ns, late_ns = real_time.departure_error_ns(view), error.timer_ns
        bound = f"real time: at most {late_ns}, as timers are late"
        row = checks.row(
            f"{direction}: departures off in 99 %, ns", off_ns, bound, off_ns <= late_ns
        )
        return [checks.withhold_pass(row, off_ns, _resolved_ns(analysis, view), HALF_A_SEGMENT)]
    left_ns = view.passed.left_ns[view.passed.departures]
    found_ns = view.error_ns[left_ns < analysis.run.stop_ns]
    if holding:
        found_ns = np.minimum(found_ns, 0)
    worst, credit_ns = int(np.abs(found_ns).max(initial=0)), view.queue.credit_ns
    holds = found_ns.max(initial=0) <= 1 and found_ns.min(initial=0) >= -1 - credit_ns
    bound = "at most 1" + (f", or {1 + credit_ns} too early" if credit_ns else "")
    what = "most by which a departure is early" if holding else "worst departure error"
    return [checks.row(f"{direction}: {what}, ns", worst, bound, holds)]


def _holds_packets(analysis: Analysis, view: QueueView) -> bool:
    """Tell whether packets may leave a queue, or one that shares its medium, later than they could.

    Headers of segments in a larger frame take time, too (GSO).
    """
    if any(host.gso for host in analysis.run.manifest.experiment.hosts.values()):
        return True
    sharing = analysis.queues.values() if view.holds else [view]
    managers = (analysis.run.element(each.queue, ManagedQueue) for each in sharing)
    return any(manager.holds_packets for manager in managers if manager)


def _kernel_queue(
    analysis: Analysis, direction: str, view: QueueView, error: real_time.ClockError | None
) -> FidelityRow:
    """Compare the queue from the captures with the kernel's own count.

    The observer reads a count between its two time stamps, so the queue must have had that length
    at some time between them. A packet is captured before it enters the queue and after it has
    left. On a clock that runs meanwhile, the interval is widened by the time that the host adds to
    a round trip, and 99 % of the samples must agree.
    """
    samples = analysis.queue_samples
    number = analysis.run.queues.index(view.queue)
    rows = np.flatnonzero(samples["interface"] == number)
    columns = {name: samples[name][rows] for name in ("time_ns", "read_ns", "packets")}
    clock = analysis.run.clock(view.queue.interface)
    # round_trip_ns is negative if two hosts' clocks differ by more than the delays.
    around_ns = max(error.round_trip_ns, 0) if error else 0
    begin_ns = clock.of_programs(columns["time_ns"]) - around_ns
    end_ns = clock.of_programs(columns["read_ns"]) + around_ns
    least, most = view.kernel()
    lowest, _ = least.range(begin_ns, end_ns)
    _, highest = most.range(begin_ns, end_ns)
    off = np.maximum(columns["packets"] - highest, lowest - columns["packets"])
    worst = max(real_time.quantile(off), 0) if error else int(off.max(initial=0))
    bound = f"real time: 0 in 99 %, within {around_ns} ns" if error else "0"
    what = f"{direction}: captures' queue against {len(rows)} kernel samples, packets"
    row = checks.row(what, worst, bound, bool(len(rows)) and worst == 0)
    return (
        checks.withhold_pass(row, around_ns, _resolved_ns(analysis, view), HALF_A_SEGMENT)
        if error
        else row
    )


def _kernel_drops(analysis: Analysis, direction: str, view: QueueView) -> FidelityRow:
    kernel = sum(analysis.run.counted_drops(view.queue, each) for each in ("root", "clsact"))
    packets, elements = view.passed.packets, analysis.run.elements(view.queue)
    uncounted = elements.refuse(packets.time_ns, packets.frame_bytes, counted=False)
    captured = int((view.passed.dropped & ~uncounted).sum())
    return checks.row(
        f"{direction}: drops in the captures minus the kernel's {kernel}",
        captured - kernel,
        "0",
        captured == kernel,
    )


def _generator_bytes(analysis: Analysis, name: str, view: ConnectionView) -> list[FidelityRow]:
    """Compare the sink's count of bytes with the payload in the capture.

    Data after a reset, which may overtake data, does not count (decision 0022).
    """
    if not len(view.segments_in):
        return [_no_data(name, view)]
    answers = analysis.run.packets_between(
        view.connection.sink_interface, view.connection, forward=False
    )
    captured = in_order_bytes(before_reset(view.taken, answers))
    said = analysis.run.document(f"traffic/{name}-sink.json", StreamSink).bytes_received
    return [
        checks.row(
            f"{name}: payload in the capture minus the sink's {said}, bytes",
            captured - said,
            "0",
            captured == said,
        )
    ]


def _no_data(name: str, view: ConnectionView) -> FidelityRow:
    """Judge a connection without data: a warning if it began during traffic.

    Other checks cover the fate of its packets: they may be lost, or be on their path at the end.
    """
    if view.connection.connect_ns < view.run.start_ns or not len(view.sent):
        return checks.row(f"{name}: payload captured, bytes", 0, "above 0", False)
    data = len(view.sent.data())
    what = "SYNs sent, and no connection by the end"
    if data:
        what = "data sent, and none arrived by the end"
    return FidelityRow(
        check=f"{name}: {what}", value=data or len(view.sent), bound="0", verdict=Verdict.WARNING
    )


def _datagrams_sent(analysis: Analysis, name: str) -> FidelityRow:
    """Compare the source's count of packets with its host's capture."""
    said = analysis.run.document(f"traffic/{name}-source.json", DatagramSource).packets_sent
    off = len(analysis.datagrams[name].sent) - said
    what = f"{name}: packets in the capture minus the source's {said}"
    return checks.row(what, off, "0", off == 0)


def _rejections(analysis: Analysis) -> list[FidelityRow]:
    """Warn of segments that arrived at a host and that its TCP rejected, by the kernel's counts."""
    return [
        FidelityRow(
            check=f"{host}: segments rejected: {why} ({counter})",
            value=count,
            bound="0",
            verdict=Verdict.WARNING,
        )
        for host in analysis.run.manifest.nodes.hosts
        for counter, why in REASONS.items()
        if (count := analysis.run.counters(host).get(counter, 0))
    ]


def _ack_checks(analysis: Analysis, name: str, view: ConnectionView) -> list[FidelityRow]:
    rows = []
    if analysis.run.manifest.experiment.stack_of(view.connection.to).acks == "every-segment":
        # A segment that the sink rejects is answered, too.
        off, merged = _acks_off(analysis, view), _merged(analysis, view.connection.to)
        what = f"{name}: acks less data segments"
        rows.append(checks.row(what, off, f"{-1 - merged}..1", -1 - merged <= off <= 1))
    factors = ack_compression.compression_factors(view.acks, view.data_service_ns)
    bounded = view.has_one_rate and analysis.keeps_spacing(view.connection)
    if len(factors) and view.ack_service_ns and bounded:
        rows.append(_largest_factor(analysis, name, view, factors.max()))
    return rows


def _acks_off(analysis: Analysis, view: ConnectionView) -> int:
    return view.acks_sent - len(analysis.run.select_steady(view.arrived.data()))


def _merged(analysis: Analysis, host: str) -> int:
    """Count the segments that arrived while a program read, and have one ACK: tcp_add_backlog."""
    return analysis.run.counters(host).get("TCPBacklogCoalesce", 0)


def _acks_of_hosts(analysis: Analysis) -> Iterator[FidelityRow]:
    """Check that all connections of a host together lack no more ACKs than its kernel merged."""
    manifest = analysis.run.manifest
    for host in manifest.nodes.hosts:
        each_acked = manifest.experiment.stack_of(host).acks == "every-segment"
        if each_acked and (merged := _merged(analysis, host)):
            views = [each for each in analysis.connections.values() if each.connection.to == host]
            off = [_acks_off(analysis, each) for each in views]
            least, most = -len(off) - merged, len(off)
            what, bound = f"{host}: acks less data segments", f"{least}..{most}"
            yield checks.row(what, sum(off), bound, least <= sum(off) <= most)


def _largest_factor(
    analysis: Analysis, name: str, view: ConnectionView, factor: float
) -> FidelityRow:
    """Check that ACKs arrive no closer than their link's rate allows."""
    what, value = f"{name}: largest compression factor", round(factor, 2)
    # The largest spacing of data that counts as back to back.
    data_ns = view.data_service_ns * ack_compression.BACK_TO_BACK
    if analysis.run.exact_clock:
        bound = data_ns / view.ack_service_ns * (1 + 1 / view.ack_service_ns)  # whole ns
        return checks.row(what, value, f"at most {bound:.2f}", factor <= bound)
    closer_ns = real_time.closer_ns(analysis, view)
    least_ns = view.ack_service_ns - closer_ns
    if least_ns <= 0:
        why = f"acks are up to {closer_ns} ns closer than one ACK takes, {view.ack_service_ns}"
        return _untold(what, value, f"real time: none, {why}")
    bound = data_ns / least_ns
    return checks.row(what, value, f"real time: at most {bound:.2f}", factor <= bound)


def _window_check(analysis: Analysis, name: str, view: ConnectionView) -> list[FidelityRow]:
    """Check that a fixed window is in flight in full, and never more.

    A sender with Linux's own stack is left out: it may hold data back. Runs with losses are left
    out: after a loss, selective ACKs make the flight less than the span from the oldest
    unacknowledged to the newest segment.
    """
    window = view.connection.window_packets
    paced = view.connection.paced
    lost = any(len(analysis.drops(queue)) for queue in analysis.queues.values())
    lost = lost or analysis.run.loses_on_links
    linux = analysis.run.manifest.experiment.stack_of(view.connection.from_).preset != "papers"
    if window is None or paced or lost or linux:
        return []
    most = most_in_flight(analysis.run, view)
    what = f"{name}: most segments in flight, of a window of {window}"
    return [checks.row(what, most, str(window), most == window)]


def _limits(analysis: Analysis, name: str, view: ConnectionView) -> list[FidelityRow]:
    """Check that no buffer limited a source, by TCP_INFO at its end; Linux's own may: warn.

    Fixed windows and FAST's alpha limit the source by design. So does the receiver's window if the
    experiment sets that window or the receiver's buffer.
    """
    connection, experiment = view.connection, analysis.run.manifest.experiment
    said = analysis.run.document(f"traffic/{name}-source.json", StreamSource)
    found = []
    if said.gave_up:
        what, warning = f"{name}: given up by the kernel: no ACK came", Verdict.WARNING
        found.append(FidelityRow(check=what, value=1, bound="0", verdict=warning))
    if connection.window_packets or connection.alpha_packets:
        return found
    sender, receiver = (experiment.stack_of(end) for end in (connection.from_, connection.to))
    limits = [("its send buffer", said.sndbuf_limited_us, sender)]
    if not (receiver.receive_window_packets or receiver.receive_buffer_bytes):
        limits.append(("the receiver's window", said.rwnd_limited_us, receiver))
    lasts_ns = (connection.stop_ns or analysis.run.stop_ns) - connection.start_ns
    most_us = int(LIMITED_SHARE * lasts_ns / 1e3)
    for by, us, stack in limits:
        row = checks.row(f"{name}: held back by {by}, us", us, f"at most {most_us}", us <= most_us)
        if us > most_us and stack.preset != "papers":
            row = row.model_copy(update={"verdict": Verdict.WARNING})
        found.append(row)
    return found


def _idling(analysis: Analysis, name: str, view: ConnectionView) -> list[FidelityRow]:
    """Warn if a source of unlimited data leaves an idle link idle.

    Under any congestion control its window is at least a segment, and lost data counts as in flight
    until it is repaired.
    """
    connection, run = view.connection, analysis.run
    begin_ns = max(connection.start_ns, run.steady_ns)
    end_ns = connection.stop_ns or run.stop_ns
    if connection.paced or begin_ns >= end_ns or not len(view.window.time_ns):
        return []
    flight = view.window.mean(begin_ns, end_ns)
    if flight >= 1 or utilisation(view.forward.passed, begin_ns, end_ns) >= IDLE_LINK:
        return []
    what = f"{name}: mean segments in flight of unlimited data, on a link that is mostly idle"
    warning = Verdict.WARNING
    return [FidelityRow(check=what, value=round(flight, 3), bound="at least 1", verdict=warning)]
