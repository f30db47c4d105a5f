"""Sources and sinks of traffic, which are programs, the experiment's programs, and the observer."""

from collections import defaultdict
from collections.abc import Iterable

from twoway.contract.network import START_NS, Connection, DatagramFlow, ip_version, mean_interval_ns
from twoway.contract.plan import (
    GUEST_BIN,
    GUEST_RUN,
    SOCKETS,
    TRAFFIC,
    Command,
    Line,
    Observe,
    Program,
    UserProgram,
)
from twoway.description.datagrams import UDP_HEADER_BYTES
from twoway.description.draws import traffic_seed
from twoway.description.point import Point
from twoway.plan.buffers import receive_buffers, send_buffer_bytes
from twoway.plan.timing import drain_s, stop_ns

PROGRESS_REPORTS = 400


def user_programs(point: Point) -> tuple[UserProgram, ...]:
    """List the programs, by the times of their starts."""
    programs = [
        UserProgram(
            name=program.name,
            node=program.host,
            stdout=f"programs/{program.name}.out",
            run=tuple(program.command),
            at_ns=START_NS + round(program.start_s * 1e9),
            stop_ns=stop_ns(point)
            if program.stop_s is None
            else START_NS + round(program.stop_s * 1e9),
            exit_code=program.exit_code,
            environment=program.environment,
            files=dict(point.files[program.name]),
            udp_port=program.udp_port,
            keeps=tuple(program.keeps),
        )
        for program in point.experiment.programs
    ]
    return tuple(sorted(programs, key=lambda program: program.at_ns))


def host_names(point: Point) -> tuple[Command, ...]:
    """Write hosts' names into the guest's /etc/hosts, if programs may use them.

    A name resolves to the address in the stack's version of IP.
    """
    if not point.experiment.programs:
        return ()
    ip = point.experiment.stack.ip
    lines = [f"{point.graph.address(host, ip)} {host}" for host in point.graph.hosts]
    hosts = ("127.0.0.1 localhost", *lines)
    return (Command(node=None, run=("tee", "/etc/hosts"), stdin=hosts),)


def observer(point: Point, *, in_kernel: bool) -> Observe:
    """Run the observer, which samples TCP_INFO and queues."""
    # The hosts that send on connections. Programs are assumed to use the stack's version of IP.
    own_ip = point.experiment.stack.ip
    senders = [(c.from_, ip_version(c.source)) for c in point.connections]
    senders += [(flow.from_, own_ip) for flow in point.datagrams]
    senders += [(program.host, own_ip) for program in point.experiment.programs]
    nodes = {ip: tuple(dict.fromkeys(node for node, its in senders if its == ip)) for ip in (4, 6)}
    observe = Observe(
        name="observe",
        start_ns=START_NS,
        stop_ns=stop_ns(point),
        interval_ns=_interval_ns(point),
        progress_interval_ns=max((stop_ns(point) - START_NS) // PROGRESS_REPORTS, 1_000_000),
        sockets=nodes[4],
        sockets6=nodes[6],
        queues={i.name: i.node for placed in point.graph.queues.values() for i in placed},
    )
    return observe.model_copy(update={"lines": _sampler(observe)}) if in_kernel else observe


def _interval_ns(point: Point) -> int:
    """Return the interval of samples, ns; by default it grows with the number of connections."""
    given = point.experiment.observe.tcp_info_ms
    return round((given or max(10, len(point.connections) / 10)) * 1e6)


def _sampler(observe: Observe) -> tuple[Line, ...]:
    """List the lines that tell twoway_testbed which sockets and queues to observe."""
    times = (observe.start_ns, observe.stop_ns, observe.interval_ns, observe.progress_interval_ns)
    return (
        *(
            Line(node=node, text=f"sockets {node}")
            for node in dict.fromkeys((*observe.sockets, *observe.sockets6))
        ),
        *(Line(node=node, text=f"queue {name}") for name, node in observe.queues.items()),
        Line(node=None, text=f"sample {' '.join(map(str, times))} {SOCKETS}"),
    )


def streams(point: Point) -> Iterable[Program]:
    """Send and receive connections' data: one program per host, one line per end."""
    ends: defaultdict[str, list[str]] = defaultdict(list)
    reports: defaultdict[str, list[str]] = defaultdict(list)
    buffers = receive_buffers(point)
    for c in point.connections:
        ends[c.from_].append(_send(point, c))
        reports[c.from_].append(f"{TRAFFIC}/{c.name}-source.json")
    for c in point.connections:
        own = point.flows[c.name].socket.receive_buffer_bytes
        at_once = point.experiment.stack_of(c.to).is_linux
        ends[c.to].append(_receive(c, own or buffers[c.to], at_once=at_once))
        reports[c.to].append(f"{TRAFFIC}/{c.name}-sink.json")
    for node in ends:
        yield Program(
            name=f"stream-{node}",
            node=node,
            run=(f"{GUEST_BIN}/stream", f"{GUEST_RUN}/{TRAFFIC}"),
            stdin=tuple(ends[node]),
            reports=tuple(reports[node]),
            patience_s=drain_s(point),
        )


def _receive(connection: Connection, buffer_bytes: int | None, *, at_once: bool) -> str:
    line = f"receive {connection.name} --port {connection.port}"
    if buffer_bytes:
        line += f" --receive-buffer {buffer_bytes}"
    line += " --at-once" * at_once
    return line + " --ipv6" * (ip_version(connection.destination) == 6)


def _send(point: Point, connection: Connection) -> str:
    words = f"""
        send {connection.name} --to {connection.destination} --port {connection.port}
        --source-port {connection.source_port} --connect-at {connection.connect_ns}
        --start-at {connection.start_ns} --stop-at {connection.stop_ns or stop_ns(point)}
        --congestion {connection.congestion_in_kernel}
    """.split()
    linux = point.experiment.stack_of(connection.from_).is_linux
    if not (linux or point.flows[connection.name].socket.send_buffer_bytes):
        words += ["--send-buffer", str(send_buffer_bytes(point, connection))]
    return " ".join([*words, *(f"--{option}" for option in _source_options(point, connection))])


def _source_options(point: Point, connection: Connection) -> Iterable[str]:
    """List a connection's options: its data if limited, and pacing."""
    flow = point.flows[connection.name]
    if flow.traffic is not None:
        yield from flow.traffic.source_options(point.experiment.span(flow, connection.name))
    if connection.transfer_bytes is not None:
        yield f"bytes {connection.transfer_bytes}"
    if point.experiment.stack_of(connection.from_).pacing:
        yield "pacing"
    yield from (f"option {each}" for each in flow.socket.of_source(point.experiment.ip_of(flow)))


def datagram_sink(flow: DatagramFlow) -> Program:
    """Keep the port of a UDP flow open until the end of traffic."""
    receive = f"{GUEST_BIN}/datagrams receive --port {flow.port}"
    receive += " --ipv6" * (ip_version(flow.destination) == 6)
    return Program(name=f"sink-{flow.name}", node=flow.to, patience_s=0, run=tuple(receive.split()))


def datagram_source(point: Point, flow: DatagramFlow) -> Program:
    """Send a UDP flow."""
    (asked,) = (each for each in point.experiment.datagrams if each.name == flow.name)
    seed = traffic_seed(point.experiment.seed, flow.name, asked.seed)
    payload_bytes = flow.packet_bytes - UDP_HEADER_BYTES[ip_version(flow.destination)]
    interval_ns = (
        round(1e9 / flow.frames_per_s)
        if flow.frames_per_s
        else mean_interval_ns(flow.packet_bytes, flow.rate_mbit)
    )
    send = f"""
        {GUEST_BIN}/datagrams send --to {flow.destination} --port {flow.port}
        --source-port {flow.source_port} --bytes {payload_bytes}
        --interval {interval_ns} --start-at {flow.start_ns} --stop-at {flow.stop_ns}
        --seed {seed}
    """
    if flow.poisson:
        send += " --poisson"
    if asked.dscp:
        send += f" --tos {asked.dscp << 2}"
    if asked.film:
        packets = asked.frame_packets(seed, (flow.stop_ns - flow.start_ns) / 1e9)
        send += f" --frames {','.join(map(str, packets))}"
    if asked.on_off:
        on_ns, off_ns = (round(1e9 * s) for s in (asked.on_off.mean_on_s, asked.on_off.mean_off_s))
        send += f" --on {on_ns} --off {off_ns}"
    return Program(
        name=f"source-{flow.name}",
        node=flow.from_,
        stdout=f"{TRAFFIC}/{flow.name}-source.json",
        run=tuple(send.split()),
    )
