"""The programs that an experiment names, and the host names in the guest's /etc/hosts."""

from twoway.contract.network import START_NS
from twoway.contract.plan import Command, UserProgram
from twoway.description.point import Point
from twoway.plan.timing import stop_ns


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
