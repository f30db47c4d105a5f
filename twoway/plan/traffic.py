"""The programs of a run: sources and sinks of traffic, and the observer."""

import math

from twoway.contract.clock import START_NS
from twoway.contract.network import Connection
from twoway.contract.plan import GUEST_BIN, SOCKETS, Line, Observe, Program, TimedProgram
from twoway.plan.timing import drain_s, stop_ns
from twoway.spec.point import Case

# The smallest send buffer: a large one is refilled in few, large copies.
LEAST_SEND_BUFFER_BYTES = 1 << 20
PROGRESS_REPORTS = 400


def observer(case: Case, *, in_kernel: bool) -> Observe:
    """Run the observer, which samples TCP_INFO and queues."""
    observe = Observe(
        name="observe",
        start_ns=START_NS,
        stop_ns=stop_ns(case),
        interval_ns=round(case.experiment.observe.tcp_info_ms * 1e6),
        progress_interval_ns=max((stop_ns(case) - START_NS) // PROGRESS_REPORTS, 1_000_000),
        sockets=tuple(dict.fromkeys(c.from_ for c in case.connections)),
        queues={i.name: i.node for placed in case.graph.queues.values() for i in placed},
    )
    return observe.model_copy(update={"lines": _sampler(observe)}) if in_kernel else observe


def _sampler(observe: Observe) -> tuple[Line, ...]:
    """List what our module testbed is told to do the observer's work."""
    times = (observe.start_ns, observe.stop_ns, observe.interval_ns, observe.progress_interval_ns)
    return (
        *(Line(node=node, text=f"sockets {node}") for node in observe.sockets),
        *(Line(node=node, text=f"queue {name}") for name, node in observe.queues.items()),
        Line(node=None, text=f"sample {' '.join(map(str, times))} {SOCKETS}"),
    )


def sink(case: Case, connection: Connection) -> Program:
    """Receive a connection's data."""
    if connection.generator == "iperf3":
        # -1: the server ends when its first test is over.
        sink = f"iperf3 -s -1 -J -p {connection.port}"
    else:
        buffer = case.experiment.stack.receive_buffer_bytes
        sink = f"{GUEST_BIN}/stream receive --port {connection.port} --receive-buffer {buffer}"
    return Program(
        name=f"sink-{connection.name}",
        node=connection.to,
        stdout=f"traffic/{connection.name}-sink.json",
        patience_s=drain_s(case),
        run=tuple(sink.split()),
    )


def stream_source(case: Case, connection: Connection) -> Program:
    """Send a connection's data with our blocking source."""
    stack, flow = case.experiment.stack, case.flows[connection.name]
    stream = f"""
        {GUEST_BIN}/stream send --to {connection.destination} --port {connection.port}
        --source-port {connection.source_port} --connect-at {connection.connect_ns}
        --start-at {connection.start_ns} --stop-at {stop_ns(case)}
        --congestion {connection.congestion_in_kernel}
        --send-buffer {send_buffer_bytes(case, connection)}
    """
    if flow.traffic is not None:
        stream += " " + " ".join(flow.traffic.stream_options(case.experiment.span(flow)))
    if connection.transfer_bytes is not None:
        stream += f" --bytes {connection.transfer_bytes}"
    if stack.pacing:
        stream += " --pacing"
    return Program(
        name=f"source-{connection.name}",
        node=connection.from_,
        stdout=f"traffic/{connection.name}-source.json",
        run=tuple(stream.split()),
    )


def send_buffer_bytes(case: Case, connection: Connection) -> int:
    """Compute the SO_SNDBUF with which a window never lacks data.

    The kernel doubles SO_SNDBUF and wakes the writer when a third of that is free. A segment counts
    with the size of its allocation, the next power of two, and a page for headers.
    """
    truesize = (1 << (case.experiment.stack.mtu_bytes + 320 - 1).bit_length()) + 4096
    return max(LEAST_SEND_BUFFER_BYTES, _most_packets(case, connection) * truesize)


def _most_packets(case: Case, connection: Connection) -> int:
    """Bound a connection's window, in packets; 0 if not known.

    Known are constant windows and a bound of FAST's: a flow of FAST has at most its direction's
    packets of one round trip without queues in flight, and at most the sum of all flows' alphas in
    queues.
    """
    if connection.alpha_packets is None:
        return connection.window_packets or 0
    data = case.profile.directions[connection.direction]
    delay_ns = sum(each.delay_ns for each in case.profile.directions.values())
    packet_bit = case.experiment.stack.mtu_bytes * 8
    alphas = sum(c.alpha_packets or 0 for c in case.connections)
    return alphas + math.ceil(data.most_mbit * delay_ns / 1e3 / packet_bit)


def iperf3_source(case: Case, connection: Connection) -> TimedProgram:
    """Send a connection's data with iperf3, from its start for whole seconds."""
    seconds = (stop_ns(case) - connection.start_ns) // 1_000_000_000
    iperf3 = f"""
        iperf3 -c {connection.destination} -p {connection.port}
        --cport {connection.source_port} -t {seconds} -C {connection.congestion_in_kernel} -J
    """
    return TimedProgram(
        name=f"source-{connection.name}",
        node=connection.from_,
        stdout=f"traffic/{connection.name}-source.json",
        at_ns=connection.start_ns,
        patience_s=drain_s(case),
        run=tuple(iperf3.split()),
    )
