"""Checks between fields of an experiment or profile that are valid by themselves."""

import re
from collections.abc import Iterator, Mapping, Sequence

from twoway.contract.network import whole_ns
from twoway.description.congestion import (
    KERNELS_OWN,
    PARAMETER_FIELDS,
    Control,
    module_parameters,
    parameters_in_kernel,
)
from twoway.description.datagrams import datagram_problems
from twoway.description.experiment import Experiment, Flow, Profile
from twoway.description.matrix import matrix_problems
from twoway.description.own_modules import OwnModule, controls_with
from twoway.description.own_setup import setup_problems
from twoway.description.programs import program_problems
from twoway.description.repetitions import seed_problems
from twoway.description.stack import MOST_RECEIVE_BUFFER_BYTES, Stack, shared_problems
from twoway.description.statement_rules import statement_problems
from twoway.description.sysctls import sysctl_problems
from twoway.description.tc_parsing import refusal, tc_problems
from twoway.description.traffic.registry import kinds
from twoway.links.aqm import ActiveQueue
from twoway.links.element import Link
from twoway.links.queue import TcQueue
from twoway.links.queue_limit import QueueLimit
from twoway.links.stages import stage_problems
from twoway.messages import suggest
from twoway.theory.registry import known_theories, tests_testbed

# Each connection has two processes in the guest, and two of 25 000 ports.
_MOST_CONNECTIONS = 4000
_LEAST_IPV6_MTU_BYTES = 1280  # RFC 8200, section 5


def profile_problems(profile: Profile) -> list[str]:
    """List contradictions in a profile, each after its field."""
    return [
        f"directions.{name}{problem}"
        for name, direction in profile.directions.items()
        for problem in (
            *stage_problems(direction, half_duplex=profile.half_duplex is not None),
            *_direction_problems(direction),
            *_element_problems(direction, profile.pools),
        )
    ]


def _element_problems(direction: Link, pools: Mapping[str, int]) -> Iterator[str]:
    """List contradictions in each element of a direction, as ".FIELD: ..."."""
    for element in direction.elements:
        for problem in (*element.problems(), *element.link_problems(direction, pools)):
            yield f".{element.FIELD}{problem}"


def _limit_problems(link: Link, managed: ActiveQueue) -> Iterator[str]:
    """List the limits of an AQM that tc refuses, such as 5 packets of red."""
    changing = link.elements.find(QueueLimit)
    limits = {packets for _, packets in changing.schedule} if changing else {link.queue_packets}
    for packets in sorted(limits):
        for _, words in managed.limited(link.model_copy(update={"queue_packets": packets})):
            if why := refusal(words):
                yield f".aqm: {managed.word} with a limit of {packets} packets: tc says {why}"


def _direction_problems(direction: Link) -> list[str]:
    """List contradictions in a profile's direction, as ".FIELD: ..."."""
    problems = []
    managed, queue = direction.elements.find(ActiveQueue), direction.elements.find(TcQueue)
    why_no_ecn = managed.why_no_ecn if managed else "drop-tail marks nothing"
    if queue:
        problems += [f".queue{problem}" for problem in tc_problems(queue)]
        why_no_ecn = "the words of queue.tc decide"
    if direction.ecn and why_no_ecn:
        problems.append(f".ecn: {why_no_ecn}")
    if direction.mark_above_ms and not (managed and managed.has_threshold):
        manager = direction.manager
        word = f"{manager.FIELD} {manager.name}" if manager else "aqm drop-tail"
        problems.append(f".mark_above_ms: codel and fq_codel have a threshold, got {word}")
    if direction.cell_overhead_bytes and not direction.cell_bytes:
        problems.append(
            ".cell_overhead_bytes: a link without cell_bytes has none, "
            f"got {direction.cell_overhead_bytes}"
        )
    # An older tc lacks dualpi2, and ours has it. The rate of a trace is not read yet.
    asks_tc = direction.rate_mbit and not problems
    if asks_tc and managed and managed.word != "dualpi2":
        problems += _limit_problems(direction, managed)
    return problems


def experiment_problems(experiment: Experiment, own: Sequence[OwnModule]) -> list[str]:
    """List contradictions in an experiment, each after its field.

    Args:
        experiment: the experiment.
        own: the modules that belong to the experiment.
    """
    controls = controls_with(own)
    problems = [
        f"flows.{index}.congestion: {_unknown(flow.congestion, controls)}"
        for index, flow in enumerate(experiment.flows)
        if flow.congestion not in controls
    ]
    if problems:
        return problems
    if whole_ns(experiment.warm_up_s) >= whole_ns(experiment.duration_s):
        problems.append(
            f"warm_up_s: must be below duration_s ({experiment.duration_s:g}), "
            f"got {experiment.warm_up_s:g}"
        )
    seen: set[str] = set()
    named = [(f"flows.{index}", flow.name) for index, flow in enumerate(experiment.flows)]
    named += [(f"datagrams.{n}", each.name) for n, each in enumerate(experiment.datagrams)]
    named += [(f"programs.{n}", program.name) for n, program in enumerate(experiment.programs)]
    for field, name in named:
        if name in seen:
            problems.append(f'{field}.name: "{name}" is used twice')
        seen.add(name)
    for index, flow in enumerate(experiment.flows):
        problems += [f"flows.{index}{p}" for p in _flow_problems(flow, experiment, controls)]
    problems += datagram_problems(
        experiment.datagrams, experiment.duration_s, experiment.stack.mtu_bytes, experiment.stack.ip
    )
    problems += _ip_problems(experiment)
    problems += shared_problems(experiment.stack, experiment.hosts)
    problems += _qdisc_problems(experiment)
    problems += setup_problems(experiment.setup_lines)
    problems += _theory_problems(experiment)
    problems += _sysctl_problems(experiment)
    problems += program_problems(experiment.programs, experiment.duration_s)
    count = 0
    for flow in experiment.flows if not problems else ():
        arrivals = flow.traffic.arrivals(experiment.span(flow)) if flow.traffic else None
        count += flow.count if arrivals is None else len(arrivals)
    least = 0 if experiment.programs or experiment.datagrams else 1
    if not problems and not least <= count <= _MOST_CONNECTIONS:
        problems.append(
            f"flows: must be {least} to {_MOST_CONNECTIONS} connections together, got {count}"
        )
    problems += matrix_problems(experiment.matrix)
    problems += seed_problems(experiment) if experiment.seeds else []
    problems += statement_problems(experiment)
    return problems + _module_problems(experiment, own, controls)


def _theory_problems(experiment: Experiment) -> list[str]:
    """List theories of TCP beside Linux's own stack, and any theory beside commands of set-up.

    No check proves what they suppose.
    """
    linux = [
        f"hosts.{host}.stack" for host, each in experiment.hosts.items() if each.stack.is_linux
    ]
    linux += ["stack"] * experiment.stack.is_linux
    named = [(e.theory or experiment.theory, m) for e in experiment.predictions for m in e.metrics]
    printed = [each for each in experiment.claims if each.value == "printed"]
    named += [(experiment.theory, metric) for each in printed for metric in each.metrics]
    known = [(theory, metric) for theory, metric in named if theory in known_theories()]
    of_tcp = [theory for theory, metric in known if not tests_testbed(str(theory), metric)]
    problems = []
    if linux and of_tcp and experiment.flows:
        why = "no check proves windows and ACKs of linux"
        problems = [f"{linux[-1]}.preset: the theory {of_tcp[0]} needs papers: {why}"]
    if known and (line := next(experiment.setup_lines, None)):
        why = "no check proves what they set up"
        problems += [f"{line.field}: the theory {known[0][0]} needs no such commands: {why}"]
    return problems


def _is_other_kernel(experiment: Experiment) -> bool:
    return experiment.kernel not in (None, "guest")


def _sysctl_problems(experiment: Experiment) -> list[str]:
    """List sysctls that the guest's kernel refuses; of other kernels no list is known."""
    if _is_other_kernel(experiment):
        return []
    shared = experiment.stack.sysctls
    given = [("stack.sysctls", shared, shared)]
    for host, each in experiment.hosts.items():
        of_host = each.stack.sysctls
        own = dict(sorted(of_host.items() - shared.items()))
        given.append((f"hosts.{host}.stack.sysctls", own, of_host))
    for name, router in experiment.routers.items():
        given.append((f"routers.{name}.sysctls", router.sysctls, router.sysctls))
    changes = [(each.set, n) for n, each in enumerate(experiment.interventions) if each.set]
    held: dict[str, dict[str, int | str]] = {}
    for change, n in sorted(changes, key=lambda each: each[0].at_s):
        before = held.get(change.host, experiment.stack_of(change.host).sysctls)
        held[change.host] = {**before, **change.sysctls}
        given.append((f"interventions.{n}.set.sysctls", change.sysctls, held[change.host]))
    return [problem for each in given for problem in sysctl_problems(*each)]


def _qdisc_problems(experiment: Experiment) -> Iterator[str]:
    """List qdiscs of hosts and routers that the guest's kernel lacks, or that tc cannot read."""
    nodes = {f"hosts.{name}": each.qdisc for name, each in experiment.hosts.items()}
    nodes |= {f"routers.{name}": each.qdisc for name, each in experiment.routers.items()}
    for node, qdisc in nodes.items():
        if not qdisc:
            continue
        lacking = "" if _is_other_kernel(experiment) else qdisc.name_lacking()
        problems = [f": {lacking}"] if lacking else tc_problems(qdisc)
        yield from (f"{node}.qdisc{problem}" for problem in problems)


def _ip_problems(experiment: Experiment) -> list[str]:
    stack, problems = experiment.stack, []
    if experiment.has_ipv6 and stack.mtu_bytes < _LEAST_IPV6_MTU_BYTES:
        problems.append(
            f"stack.mtu_bytes: IPv6 needs {_LEAST_IPV6_MTU_BYTES} at least, got {stack.mtu_bytes}"
        )
    if experiment.predictions:
        problems += [
            f"flows.{index}.ip: theories have the headers of one version, stack.ip ({stack.ip}), "
            f"got {flow.ip}"
            for index, flow in enumerate(experiment.flows)
            if experiment.ip_of(flow) != stack.ip
        ]
    return problems


def _unknown(name: str, controls: Mapping[str, Control]) -> str:
    others = suggest(name, controls) or f"; there are {', '.join(controls)}"
    return f"no control {name!r}{others}"


def _swept_controls(experiment: Experiment) -> set[object]:
    """List the congestion controls that flows have in any point of a sweep."""
    found: set[object] = set()
    for axis in experiment.matrix.values():
        for value in map(axis.value, axis.to):
            values = value if isinstance(value, list) else [value] * len(axis.set)
            # Another rule refuses an axis with another number of values than fields.
            pairs = zip(axis.set, values, strict=False)
            found |= {each for path, each in pairs if path.endswith(".congestion")}
    return found


def _module_problems(
    experiment: Experiment, own: Sequence[OwnModule], controls: Mapping[str, Control]
) -> list[str]:
    problems = []
    in_use = {flow.congestion: controls[flow.congestion] for flow in experiment.flows}
    for control in in_use.values():
        values = {getattr(f, control.field) for f in experiment.flows if control.field}
        if len(values - {None}) > control.most_variants:
            problems.append(
                f"flows: {control.module} has {control.most_variants} different {control.variants} "
                f"at most, got {len(values)}"
            )
        if control.variants in experiment.modules.get(control.module or "", {}):
            problems.append(
                f"modules.{control.module}.{control.variants}: set by the flows' {control.field}"
            )
    brought = {module.name: module.parameters for module in own}
    somewhere = in_use.keys() | _swept_controls(experiment)
    # A program may use any control of the kernel.
    kernels = KERNELS_OWN if experiment.programs else KERNELS_OWN.keys() & somewhere
    used = sorted(
        brought.keys()
        | {c.module for name, c in controls.items() if c.module and name in somewhere}
        | {f"tcp_{control}" for control in kernels}
    )
    first = _first_given(experiment)
    problems += _control_problems(experiment, first)
    for name, given in experiment.parameters.items():
        if name not in used and name not in experiment.modules:
            continue  # a flow of another control has it: see above
        if name not in used:
            problems.append(f"modules.{name}: no flow uses it; in use: {', '.join(used) or 'none'}")
            continue
        kernels_own = parameters_in_kernel(name)
        if name in brought:
            known = brought[name]
        else:
            known = module_parameters(name) if kernels_own is None else kernels_own
        problems += [
            f"{first[name, parameter][0]}: no such parameter; "
            f"{name} has {', '.join(known) or 'none'}"
            for parameter in given
            if parameter not in known
        ]
        problems += [
            f"{first[name, parameter][0]}: must be a whole number of 32 bits, got {value!r}"
            for parameter, value in given.items()
            if kernels_own and parameter in known and not _has_32_bits(value)
        ]
    return problems


def _first_given(experiment: Experiment) -> dict[tuple[str, str], tuple[str, int | str]]:
    """List the first field, and its value, that gives each parameter of each module."""
    first: dict[tuple[str, str], tuple[str, int | str]] = {
        (module, name): (f"modules.{module}.{name}", value)
        for module, given in experiment.modules.items()
        for name, value in given.items()
    }
    for index, flow in enumerate(experiment.flows):
        for control, given in flow.controls.items():
            for name, value in given.items():
                field = f"flows.{index}.{control}.{name}"
                first.setdefault((f"tcp_{control}", name), (field, value))
    return first


def _control_problems(
    experiment: Experiment, first: Mapping[tuple[str, str], tuple[str, int | str]]
) -> Iterator[str]:
    """List parameters of flows' controls that the kernel, with one value for all, cannot have."""
    for index, flow in enumerate(experiment.flows):
        for control in flow.controls:
            if control != flow.congestion:
                yield f"flows.{index}.{control}: the flow's congestion is {flow.congestion}"
        for (module, name), (field, value) in first.items():
            own = flow.controls.get(flow.congestion, {}).get(name)
            inherits = own is None and field.startswith("modules.")
            if module == f"tcp_{flow.congestion}" and not inherits and str(own) != str(value):
                got = "none" if own is None else own
                why = f"one value holds for all flows of a run, {field} is {value}"
                yield f"flows.{index}.{flow.congestion}.{name}: {why}, got {got}"


def _has_32_bits(value: int | str) -> bool:
    return bool(re.fullmatch(r"-?[0-9]{1,10}", str(value))) and -(2**31) <= int(value) < 2**32


def _flow_problems(
    flow: Flow, experiment: Experiment, controls: Mapping[str, Control]
) -> list[str]:
    problems = []
    stop, stop_s = ("stop_s", flow.stop_s) if flow.stop_s else ("duration_s", experiment.duration_s)
    if whole_ns(stop_s) > whole_ns(experiment.duration_s):
        problems.append(
            f".stop_s: must be at most duration_s ({experiment.duration_s:g}), got {stop_s:g}"
        )
    if experiment.span(flow).seconds <= 0:
        problems.append(f".start_s: must be below {stop} ({stop_s:g}), got {flow.start_s:g}")
    problems += _traffic_problems(flow, experiment, controls[flow.congestion])
    needed = controls[flow.congestion].field
    for field in PARAMETER_FIELDS:
        value = getattr(flow, field)
        if field == needed and value is None:
            problems.append(f".{field}: required with congestion: {flow.congestion}")
        if field != needed and value is not None:
            takers = [name for name, control in controls.items() if control.field == field]
            problems.append(
                f".{field}: only congestion: {', '.join(takers)} takes it, "
                f'got {value} with "{flow.congestion}"'
            )
    if flow.window_packets is not None:
        problems += _window_problems(flow.window_packets, experiment.stack_of(flow.to))
    return problems


def _traffic_problems(flow: Flow, experiment: Experiment, control: Control) -> list[str]:
    """List contradictions between the fields of a flow's traffic."""
    problems = []
    pacing = experiment.stack_of(flow.from_).pacing
    given, span = flow.traffics, experiment.span(flow)
    if len(given) > 1:
        _, second, *_ = given
        problems.append(f".{second}: a flow has one of {', '.join(kinds())}; got {list(given)}")
    if pacing and not control.can_be_paced:
        problems.append(f".congestion: stack.pacing has no rate for {flow.congestion}")
    for name, traffic in given.items():
        if flow.count > 1 and traffic.arrivals(span) is not None:
            problems.append(f".count: {name} sets the number of connections, got {flow.count}")
        if span.seconds > 0:
            spans = (experiment.span(flow, each) for each in flow.connection_names)
            found = filter(None, map(traffic.problems, spans))
            problems += [f".{name}{problem}" for problem in next(found, [])]
    return problems


def _window_problems(window_packets: int, stack: Stack) -> list[str]:
    window_bytes = window_packets * stack.mtu_bytes
    # Half of SO_RCVBUF: the sink leaves up to 1 MiB unread, and buffers also hold headers.
    buffer = stack.receive_buffer_bytes or MOST_RECEIVE_BUFFER_BYTES
    if window_bytes <= buffer // 2:
        return []
    problem = (
        f".window_packets: {window_packets} segments of {stack.mtu_bytes} bytes need "
        f"{window_bytes} bytes; half of stack.receive_buffer_bytes "
        f"({buffer // 2}) is the most that the receiver can offer"
    )
    return [problem]
