"""plan.json: every command of a run in order, with its purpose.

The plan includes the commands that make nodes, links, addresses and routes: Mininet's, recorded as
it builds the topology in the sandbox (twoway/description/describe_topology.py).

A step's kind says what the step does. Code that needs more than the command reads the step's
fields, and never parses the command.
"""

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, computed_field, model_validator

from twoway.contract.model import Document, Record
from twoway.contract.network import BOOT_NS, READY_NS, SETTLE_NS, START_NS
from twoway.errors import RunError

PLAN = "plan.json"
# The folder of our programs and modules in a guest.
GUEST_BIN = "/mnt/bin"
# A run's folder in a guest.
GUEST_RUN = "/mnt/run"
# The guest's folder for modules that belong to the experiment.
OWN_MODULES = "/mnt/own-modules"
# The folder of samples in a guest.
SOCKETS = f"{GUEST_RUN}/sockets"
# The folder, in a run's folder, of reports from the ends of connections.
TRAFFIC = "traffic"
# The file with the ends of the experiment's programs.
ENDED = "programs/ended.json"
# Default limit of a program's time to end by itself.
PATIENCE_S = 5.0

Node = Annotated[
    str | None, Field(description="the node in whose namespace it runs; null for the guest's own")
]
Words = tuple[str, ...]


class _Step(Record):
    node: Node


class _Derived(_Step):
    """A step whose command follows from its other fields.

    Documents contain the command for the guest and for people; reading a step computes the command
    again.
    """

    @model_validator(mode="before")
    @classmethod
    def _without_command(cls, fields: dict[str, Any]) -> dict[str, Any]:
        return {n: value for n, value in fields.items() if n not in cls.model_computed_fields}


class LoadModule(_Derived):
    """Load a kernel module: one of ours, or one that belongs to the experiment."""

    kind: Literal["load_module"] = "load_module"
    node: None = Field(default=None, description="none: it changes the whole kernel")
    module: str = Field(description="the module's name")
    parameters: dict[str, str] = Field(description="values by name")
    sources: dict[str, str] = Field(
        default={}, description="its sources by file name; none for one of ours"
    )

    @computed_field(description="the command")  # type: ignore[prop-decorator] # as pydantic has it
    @property
    def run(self) -> Words:
        """Build the command."""
        folder = OWN_MODULES if self.sources else GUEST_BIN
        return ("insmod", f"{folder}/{self.file}", *self.words)

    @property
    def file(self) -> str:
        """The module's file name."""
        return f"{self.module}.ko"

    @property
    def words(self) -> Words:
        """The parameters as arguments of insmod."""
        return tuple(f"{name}={value}" for name, value in self.parameters.items())


class SetParameters(_Step):
    """Write parameters of a congestion control that is part of the kernel; read them back."""

    kind: Literal["set_parameters"] = "set_parameters"
    node: None = Field(default=None, description="none: it changes the whole kernel")
    module: str = Field(description="the control's name under /sys/module")
    parameters: dict[str, str] = Field(description="values by name")


class End(Record):
    """One end of a link."""

    node: str = Field(description="the node that it belongs to")
    interface: str = Field(description="its name")
    mac: str = Field(description="its MAC address")


class MakeNetwork(_Derived):
    """Make the nodes' namespaces, and the links between them."""

    kind: Literal["make_network"] = "make_network"
    node: None = Field(default=None, description="none: it makes the nodes")
    nodes: Words = Field(description="the nodes")
    links: tuple[tuple[End, End], ...] = Field(description="both ends of each link")

    @computed_field(description="the command")  # type: ignore[prop-decorator] # as pydantic has it
    @property
    def run(self) -> Words:
        """Build the command."""
        return ("ip", "-batch", "-")

    @computed_field(description="lines for its standard input")  # type: ignore[prop-decorator]
    @property
    def stdin(self) -> Words:
        """Build the lines of its standard input."""
        return (
            *(f"netns add {node}" for node in self.nodes),
            *(f"link add {_end(one)} type veth peer {_end(other)}" for one, other in self.links),
        )


def _end(end: End) -> str:
    return f"name {end.interface} netns {end.node} address {end.mac}"


class SetSysctls(_Step):
    """Write sysctls and read them back."""

    kind: Literal["set_sysctls"] = "set_sysctls"
    sysctls: dict[str, int | str] = Field(description="values by name")


class SetOffloads(_Step):
    """Switch an interface's offloads off and read them back."""

    kind: Literal["set_offloads"] = "set_offloads"
    interface: str = Field(description="the interface")
    off: Words = Field(description="the offloads, as `ethtool -K` names them")


class Command(_Step):
    """Run a command that must end with status 0."""

    kind: Literal["command"] = "command"
    run: Words = Field(description="the command")
    stdin: Words = Field(default=(), description="lines for its standard input")


class TimedCommand(Command):
    """Run a command at a time during the traffic."""

    at_ns: int = Field(description="start, ns on the plan's clock")
    by_ns: int = Field(description="latest end, ns on the plan's clock")


class Save(_Step):
    """Run a command and keep its output."""

    kind: Literal["save"] = "save"
    run: Words = Field(description="the command")
    file: str = Field(description="file for its output, in the run's folder")


class Copy(_Step):
    """Keep a file of the kernel, as the step's node sees it."""

    kind: Literal["copy"] = "copy"
    source: str = Field(description="the file")
    file: str = Field(description="file for its content, in the run's folder")


class Readback(Record):
    """A value that a command must print."""

    path: Words = Field(description="keys into the output; in a list a key is a name or a number")
    value: Any = Field(description="the value there")


class Reading(Record):
    """A JSON document that a command prints."""

    file: str = Field(description="file for the document, in the run's folder")
    expect: tuple[Readback, ...] = Field(description="values that it must contain")


class Check(_Step):
    """Run a command, keep the JSON documents that it prints and compare values in them."""

    kind: Literal["check"] = "check"
    run: Words = Field(description="the command")
    stdin: Words = Field(default=(), description="lines for its standard input")
    readings: tuple[Reading, ...] = Field(description="the documents, in order")


Step = Annotated[
    MakeNetwork
    | LoadModule
    | SetParameters
    | SetSysctls
    | SetOffloads
    | Command
    | Save
    | Copy
    | Check,
    Field(discriminator="kind"),
]


class Line(_Step):
    """A line for the device of our kernel module twoway_testbed."""

    text: str = Field(description="the line")


class _Daemon(_Step):
    name: str = Field(description="the name of its files in log/")
    stdout: str | None = Field(
        default=None, description="file for its output, in the run's folder; null: log/NAME.out"
    )
    reports: Words = Field(default=(), description="files that it writes, in the run's folder")
    ready: str | None = Field(
        default=None, description="the text on standard error that says that it is ready, if any"
    )
    patience_s: float = Field(
        default=PATIENCE_S,
        description="the longest time that it may run after the end of traffic, s",
    )
    stdin: Words = Field(default=(), description="lines for its standard input")
    lines: tuple[Line, ...] = Field(
        default=(), description="the line for an instrument in the kernel; a program gets none"
    )


class Program(_Daemon):
    """Run a program beside the others: a source, a sink or a recorder."""

    kind: Literal["program"] = "program"
    run: Words = Field(description="the command")


class PlannedFile(Record):
    """A file that belongs to an experiment."""

    base64: str = Field(description="its content")
    executable: bool = Field(description="it is a program")


class UserProgram(_Daemon):
    """Run a program of the host's file system, in a folder of its own in the guest's memory."""

    kind: Literal["user_program"] = "user_program"
    run: Words = Field(description="the command")
    at_ns: int = Field(description="start, ns on the plan's clock")
    stop_ns: int = Field(description="time of the SIGTERM, ns on the plan's clock")
    exit_code: int | None = Field(
        description="the exit status with which it must end by itself; null: it must run until the "
        "SIGTERM"
    )
    environment: dict[str, str] = Field(description="its variables besides PATH and HOME")
    files: dict[str, PlannedFile] = Field(description="its files, by their paths in its folder")
    udp_port: int | None = Field(default=None, description="the UDP port that it sends from")
    keeps: Words = Field(default=(), description="files of its folder to keep")

    @property
    def kept(self) -> Words:
        """The files to keep, by their paths in the run's folder."""
        return tuple(f"programs/{self.name}/{file}" for file in self.keeps)


class Capture(_Daemon):
    """Capture the packets of an interface."""

    kind: Literal["capture"] = "capture"
    run: Words = Field(default=(), description="the command; empty for an instrument")
    interface: str = Field(description="the interface")
    direction: Literal["in", "out", "inout"] = Field(description="which of its packets")


class Observe(_Derived, _Daemon):
    """Sample TCP_INFO of nodes' connections and the lengths of queues."""

    kind: Literal["observe"] = "observe"
    node: None = Field(default=None, description="none: it sees all nodes")
    start_ns: int = Field(description="time of the first sample, ns on the plan's clock")
    stop_ns: int = Field(description="time of the last sample, ns on the plan's clock")
    interval_ns: int = Field(description="time between samples")
    progress_interval_ns: int = Field(description="time between reports of progress")
    sockets: Words = Field(description="nodes whose IPv4 connections are sampled")
    sockets6: Words = Field(default=(), description="nodes whose IPv6 connections are sampled")
    queues: dict[str, str] = Field(description="nodes of the queues that are sampled, by interface")

    @computed_field(description="the command")  # type: ignore[prop-decorator] # as pydantic has it
    @property
    def run(self) -> Words:
        """Build the command; an instrument has none."""
        if self.lines:
            return ()
        return (
            *(f"{GUEST_BIN}/observe", "--start", str(self.start_ns), "--stop", str(self.stop_ns)),
            *("--interval", str(self.interval_ns)),
            *("--progress-interval", str(self.progress_interval_ns)),
            *("--out", SOCKETS),
            *(word for node in self.sockets for word in ("--sockets", node)),
            *(word for node in self.sockets6 for word in ("--sockets6", node)),
            *(word for i, node in self.queues.items() for word in ("--queue", f"{node}/{i}")),
        )

    def select_nodes(self, nodes: Words) -> "Observe":
        """Reduce the samples to the sockets and queues of some nodes."""
        return self.model_copy(
            update={
                "sockets": tuple(node for node in self.sockets if node in nodes),
                "sockets6": tuple(node for node in self.sockets6 if node in nodes),
                "queues": {i: node for i, node in self.queues.items() if node in nodes},
            }
        )


Daemon = Program | UserProgram | Capture | Observe


class Topology(Record):
    """The Mininet topology for Mininet's prompt."""

    name: str = Field(description="the file's stem")
    source: str = Field(description="the file's content")
    parameters: dict[str, int] = Field(default={}, description="passed to the topology's build()")


class Times(Record):
    """The times of a run, ns on the plan's clock."""

    boot_ns: int = Field(default=BOOT_NS, description="when a guest boots")
    ready_by_ns: int = Field(default=READY_NS, description="end of set-up")
    start_ns: int = Field(default=START_NS, description="when traffic starts")
    stop_ns: int = Field(default=START_NS, description="when traffic stops")
    settle_ns: int = Field(
        default=SETTLE_NS, description="time from the end of traffic to the end of captures"
    )


class Share(Record):
    """One host's share of a plan: the steps of the host's nodes."""

    nodes: Words = Field(description="the nodes that the host plays")
    links: dict[str, str] = Field(
        description="the host's interfaces to other hosts, by their names in the plan"
    )


class Plan(Document):
    """The commands of a run, written before the first one runs.

    A plan without steps is for a guest that runs another program.
    """

    schema_: Literal[6] = Field(default=6, description="version of this format: 6")
    experiment: str = Field(default="none", description="the experiment's id, with its point")
    mode: Literal["run", "shell"] = Field(
        default="run", description="`shell` stops after set-up with Mininet's prompt"
    )
    memory_mib: int = Field(description="memory of a guest, MiB")
    seed: int = Field(default=1, description="seed of the guest kernel's random numbers")
    topology: Topology | None = Field(default=None, description="for the mode `shell` only")
    ipv6: bool = Field(default=False, description="nodes have IPv6, too")
    clock: Times = Times()
    guest_only: Words = Field(
        default=(), description="the spec's fields that need the guest of user-mode Linux"
    )
    share: Share | None = Field(
        default=None, description="one host's share of a multi-host run; null for a whole plan"
    )
    setup: tuple[Step, ...] = Field(
        default=(), description="steps between boot and traffic, in order"
    )
    recorders: tuple[Program, ...] = Field(
        default=(), description="recorders of DTM channels, from before traffic to its end"
    )
    captures: tuple[Capture, ...] = Field(
        default=(), description="captures, from before traffic to its end"
    )
    sinks: tuple[Program, ...] = Field(default=(), description="they receive datagrams")
    sources: tuple[Annotated[Observe | Program, Field(discriminator="kind")], ...] = Field(
        default=(), description="the observer, and programs that send and receive"
    )
    at_start: tuple[Step, ...] = Field(default=(), description="as traffic starts")
    changes: tuple[TimedCommand, ...] = Field(
        default=(), description="changes of links during the traffic, by time"
    )
    user_programs: tuple[UserProgram, ...] = Field(
        default=(), description="programs that the experiment names, by time"
    )
    teardown: tuple[Step, ...] = Field(default=(), description="after traffic")

    @property
    def programs(self) -> tuple[Program | Observe, ...]:
        """All programs but those of captures."""
        return (*self.recorders, *self.sinks, *self.sources)

    @property
    def modules(self) -> list[str]:
        """The file names of our kernel modules that the plan loads."""
        return [step.file for step in self._loads() if not step.sources]

    @property
    def own_modules(self) -> list[LoadModule]:
        """The steps that load modules of the experiment."""
        return [step for step in self._loads() if step.sources]

    def _loads(self) -> list[LoadModule]:
        return [step for step in self.setup if isinstance(step, LoadModule)]


def read_plan(folder: Path) -> Plan:
    """Read the plan in a run's folder.

    Raises: RunError if there is none that this version of twoway can carry out.
    """
    try:
        return Plan.read(folder / PLAN)
    except (OSError, ValueError) as error:
        raise RunError(str(error)) from error
