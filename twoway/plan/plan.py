"""Building the plan: the commands of a run, before the first one runs.

An experiment always gives the same plan, byte for byte, wherever the checkout is.
"""

from typing import Literal

from twoway.contract.plan import Plan, Times, Topology
from twoway.plan.buffers import buffers_mib, receive_buffer_bytes
from twoway.plan.captures import captures
from twoway.plan.programs import user_programs
from twoway.plan.setup import (
    channel_recorders,
    channel_restarts,
    link_changes,
    queue_statistics,
    setup_steps,
)
from twoway.plan.shaping import changing_shapers, compile_profile
from twoway.plan.timing import stop_ns
from twoway.plan.traffic import datagram_sink, datagram_source, observer, streams
from twoway.spec.point import Case

# Guest memory, MiB: of the system, and the most that each of the others may take.
SYSTEM_MIB, NODE_MIB, CAPTURE_MIB, CONNECTION_MIB, PROGRAM_MIB = 512, 8, 4, 4, 128


def build_plan(
    case: Case, mode: Literal["run", "shell"] = "run", *, in_kernel: bool = False
) -> Plan:
    """Build the plan of a run.

    Args:
        case: the experiment and the files that it names.
        mode: "run", or "shell" to stop after set-up with Mininet's prompt.
        in_kernel: True if twoway_testbed captures and samples unless the experiment says otherwise.
    """
    chosen = case.experiment
    taps = (chosen.capture or ("kernel" if in_kernel else "tcpdump")) == "kernel"
    samples = (chosen.observe.sampler or ("kernel" if in_kernel else "program")) == "kernel"
    found = captures(case, in_kernel=taps)
    shapers, buffer = compile_profile(case.profile, case.graph), receive_buffer_bytes(case)
    return Plan(
        experiment=case.id,
        mode=mode,
        memory_mib=_memory_mib(case, len(found)),
        seed=chosen.seed,
        topology=Topology(**dict(chosen.topology), source=case.topology_source)
        if mode == "shell"
        else None,
        ipv6=case.experiment.has_ipv6,
        clock=Times(stop_ns=stop_ns(case)),
        guest_only=(
            *case.profile.guest_only,
            *(f"topology.name: switch {switch}" for switch in case.graph.switches),
            *(f"own_modules.{module.name}" for module in case.own_modules),
            *(f"programs.{program.name}" for program in chosen.programs),
        ),
        setup=setup_steps(case, shapers, buffer, instruments=taps or samples),
        recorders=channel_recorders(shapers),
        captures=found,
        at_start=channel_restarts(shapers),
        sinks=tuple(datagram_sink(flow) for flow in case.datagrams),
        sources=(
            observer(case, in_kernel=samples),
            *streams(case, buffer),
            *(datagram_source(case, flow) for flow in case.datagrams),
        ),
        changes=link_changes(changing_shapers(case.profile, case.graph, stop_ns(case))),
        user_programs=user_programs(case),
        teardown=queue_statistics(shapers),
    )


def _memory_mib(case: Case, captures: int) -> int:
    """Compute the guest's memory, which is an upper limit of its use."""
    return (
        SYSTEM_MIB
        + NODE_MIB * len(case.graph.nodes)
        + CAPTURE_MIB * captures
        + CONNECTION_MIB * (len(case.connections) + len(case.datagrams))
        + PROGRAM_MIB * len(case.experiment.programs)
        + buffers_mib(case)
    )
