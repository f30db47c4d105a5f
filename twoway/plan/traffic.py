"""The programs of a run: sources and sinks of traffic, and the observer."""

import math
from typing import Any

from twoway.contract.clock import START_NS
from twoway.plan.steps import GUEST_BIN
from twoway.plan.timing import connect_ns, drain_s, start_ns, stop_ns
from twoway.spec.connections import Connection
from twoway.spec.point import Case

# The smallest send buffer: a large one is refilled in few, large copies.
LEAST_SEND_BUFFER_BYTES = 1 << 20
PROGRESS_REPORTS = 400


def observer(case: Case) -> dict[str, Any]:
    """Run the observer, which samples TCP_INFO and queues."""
    interval_ns = round(case.experiment.observe.tcp_info_ms * 1e6)
    progress_ns = max((stop_ns(case) - START_NS) // PROGRESS_REPORTS, 1_000_000)
    queues = [i for placed in case.graph.queues.values() for i in placed]
    senders = dict.fromkeys(c.flow.from_ for c in case.connections)
    observe = f"""
        {GUEST_BIN}/observe --start {START_NS} --stop {stop_ns(case)} --interval {interval_ns}
        --progress-interval {progress_ns} --out /mnt/run/sockets
        {" ".join(f"--sockets {host}" for host in senders)}
        {" ".join(f"--queue {i.node}/{i.name}" for i in queues)}
    """
    return {"name": "observe", "node": None, "run": observe.split()}


def sink(case: Case, connection: Connection) -> dict[str, Any]:
    """Receive a connection's data."""
    if connection.flow.generator == "iperf3":
        # -1: the server ends when its first test is over.
        sink = f"iperf3 -s -1 -J -p {connection.port}"
    else:
        buffer = case.experiment.stack.receive_buffer_bytes
        sink = f"{GUEST_BIN}/stream receive --port {connection.port} --receive-buffer {buffer}"
    return {
        "name": f"sink-{connection.name}",
        "node": connection.flow.to,
        "stdout": f"traffic/{connection.name}-sink.json",
        "patience_s": drain_s(case),
        "run": sink.split(),
    }


def _source(connection: Connection) -> dict[str, Any]:
    return {
        "name": f"source-{connection.name}",
        "node": connection.flow.from_,
        "stdout": f"traffic/{connection.name}-source.json",
    }


def stream_source(case: Case, connection: Connection) -> dict[str, Any]:
    """Send a connection's data with our blocking source."""
    stack, flow = case.experiment.stack, connection.flow
    stream = f"""
        {GUEST_BIN}/stream send --to {case.graph.address(flow.to)} --port {connection.port}
        --source-port {connection.source_port} --connect-at {connect_ns(connection)}
        --start-at {start_ns(connection)} --stop-at {stop_ns(case)}
        --congestion {connection.congestion} --send-buffer {send_buffer_bytes(case, connection)}
    """
    if flow.traffic is not None:
        stream += " " + " ".join(flow.traffic.stream_options(case.experiment.span(flow)))
    if connection.transfer_bytes is not None:
        stream += f" --bytes {connection.transfer_bytes}"
    if stack.pacing:
        stream += " --pacing"
    return _source(connection) | {"run": stream.split()}


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
    flow = connection.flow
    if flow.alpha_packets is None:
        return flow.window_packets or 0
    data = case.profile.directions[connection.direction]
    delay_ms = sum(each.delay_ms for each in case.profile.directions.values())
    packet_bit = case.experiment.stack.mtu_bytes * 8
    alphas = sum(c.flow.alpha_packets or 0 for c in case.connections)
    return alphas + math.ceil(data.most_mbit * 1e3 * delay_ms / packet_bit)


def iperf3_source(case: Case, connection: Connection) -> dict[str, Any]:
    """Send a connection's data with iperf3, from its start for whole seconds."""
    begin_ns = start_ns(connection)
    seconds = (stop_ns(case) - begin_ns) // 1_000_000_000
    iperf3 = f"""
        iperf3 -c {case.graph.address(connection.flow.to)} -p {connection.port}
        --cport {connection.source_port} -t {seconds} -C {connection.congestion} -J
    """
    return _source(connection) | {
        "at_ns": begin_ns,
        "patience_s": drain_s(case),
        "run": iperf3.split(),
    }
