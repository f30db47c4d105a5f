"""manifest.json: everything that the analysis may know of a run.

experiment.json beside it has later changes of the experiment, machine.json the data of one host of
several.
"""

import hashlib
import os
import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import ConfigDict, Field, model_validator

from twoway.contract.expression import DerivedByName
from twoway.contract.files import digest_of, open_run_file, sha256
from twoway.contract.model import (
    Count,
    Document,
    FileName,
    FilePath,
    Nanoseconds,
    NonNegative,
    OffsetNs,
    Record,
)
from twoway.contract.network import (
    ClockSource,
    Connection,
    DatagramFlow,
    Duration,
    ProgramRun,
    Queue,
)
from twoway.contract.not_proven import NotProven
from twoway.contract.statements import Claim, Finding, Prediction
from twoway.links.direction import Direction
from twoway.links.half_duplex import HalfDuplex

MANIFEST = "manifest.json"
# The experiment as its file describes it now, if different from manifest.json.
EXPERIMENT = "experiment.json"
# The file that each host of a multi-host run writes beside its artifacts.
MACHINE = "machine.json"
CLOCKS = "clock.json"
# The reason why a finished run cannot be analysed.
FAILED = "failed.json"
# The folder of a run's captures, and that of the samples of its connections and queues.
CAPTURES = "pcap"
SAMPLES = "sockets"


class _Quoted(Record):
    """A part of an experiment's or profile's file.

    Fields that no analysis uses are kept as they are. `twoway schema experiment` and `twoway schema
    profile` describe them.
    """

    model_config = ConfigDict(extra="allow")


class Source(_Quoted):
    """The paper an experiment reproduces."""

    paper: str = Field(description="authors, title, year")
    where: str = Field(description="section and figure")


class Stack(_Quoted):
    """The TCP stack's personality."""

    preset: str = Field(
        default="papers", description="the settings that no field gives; `papers` in older runs"
    )
    mtu_bytes: Count = Field(description="IP packet size limit of every interface")
    acks: Literal["every-segment", "delayed"] = Field(description="when the receiver acknowledges")
    receive_window_packets: Count | None = Field(
        default=None, description="full segments that a receiver offers at most, if the file says"
    )
    receive_buffer_bytes: Count | None = Field(
        default=None, description="SO_RCVBUF of sinks, if the file says"
    )


class Host(_Quoted):
    """The settings of one host."""

    stack: Stack
    gso: bool = Field(default=False, description="its packets of many segments are not cut")
    gro: bool = Field(default=False, description="it merges segments that arrive")


class Axis(_Quoted):
    """An axis of a sweep."""

    to: tuple[Any, ...] | dict[str, Any] = Field(
        description="its values in order, or values by the names that points get"
    )
    set: tuple[str, ...] = Field(
        default=(), description="the fields that it sets, as flows.NAME.FIELD; empty in older runs"
    )


class Scatter(_Quoted):
    """A figure of one metric against another."""

    y: str = Field(description="a metric, of all connections or queues")
    x: str = Field(description="the metric to draw it against, of the same connections or queues")
    for_each: str | None = Field(
        description="the axis with a figure for each of its values; null: one figure"
    )


class Experiment(_Quoted):
    """The experiment at the run's point."""

    id: FileName = Field(description="the file's stem, with \"@\" and the point's name")
    title: str = Field(description="one line for people")
    summary: str = Field(description="what is measured; may be empty")
    source: Source | None = Field(description="the paper it comes from, if any")
    stack: Stack
    hosts: dict[FileName, Host] = Field(default={}, description="settings of single hosts")
    duration_s: NonNegative = Field(description="simulated seconds of traffic")
    warm_up_s: NonNegative = Field(description="time at the start that every metric leaves out")
    matrix: dict[str, Axis] = Field(description="a sweep's axes by name; empty if it is none")
    metrics: DerivedByName = Field(default={}, description="metrics computed from others, by name")
    figures: tuple[Scatter, ...] = Field(
        default=(), description="figures that come first on the sweep's page"
    )
    predictions: tuple[Prediction, ...] = Field(description="by this project's theory, here")
    claims: tuple[Claim, ...] = Field(description="of the paper, about this point")
    findings: tuple[Finding, ...] = Field(description="what was seen at this point before")
    seed: int = Field(default=1, description="the seed of random numbers")

    def stack_of(self, node: str) -> Stack:
        """Return a node's stack; that of routers and switches is the experiment's."""
        return self.hosts[node].stack if node in self.hosts else self.stack

    def said_of(self, metric: str) -> list[tuple[str, float]]:
        """List the sources of expected values of a metric, with the values.

        The source of a prediction is "theory", that of a claim "paper" or "simulation".
        """
        rows = [
            *(("theory", row) for row in self.predictions),
            *((row.by, row) for row in self.claims if not row.against),
        ]
        return [
            (who, row.value) for who, row in rows if row.metric == metric and row.value is not None
        ]


class Profile(_Quoted):
    """Link behaviour at the run's point."""

    half_duplex: HalfDuplex | None = Field(
        default=None, description="the medium that both directions share; null: each has its own"
    )
    directions: dict[FileName, Direction] = Field(description="by name")


# The axis of repetitions, which no matrix has.
SEED = "seed"
_MEASURED = {"experiment", "point", "clock", "profile"}


# The longest experiment, ns.
_LONGEST_NS = 10**16


class Window(Record):
    """Times on the plan's clock."""

    start_ns: Nanoseconds = Field(description="start of traffic")
    steady_ns: Nanoseconds = Field(description="end of warm-up")
    stop_ns: Nanoseconds = Field(description="end of traffic")

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if not self.start_ns <= self.steady_ns < self.stop_ns:
            raise ValueError("start_ns, steady_ns and stop_ns must follow each other")
        if self.stop_ns - self.start_ns > _LONGEST_NS:
            raise ValueError(f"traffic must last at most {_LONGEST_NS} ns")
        return self


class Described(Document):
    """The experiment of a run, as its files describe it.

    If the files change after the run in texts, statements or warm-up, experiment.json has the new
    experiment.
    """

    schema_: Literal[4] = Field(default=4, description="version of this format: 4")
    experiment: Experiment
    point: Mapping[str, Any] = Field(
        description="the point's values by axis; empty if the experiment is no sweep"
    )
    spec_sha256: str = Field(description="hash of experiment, profile and topology")
    clock: Window
    profile: Profile

    @property
    def measured_sha256(self) -> str:
        """Hash everything that a measurement depends on: all but texts and statements."""
        texts = {"title", "summary", "source", "matrix", "predictions", "claims", "findings"}
        document = self.model_dump_json(include=_MEASURED, exclude={"experiment": texts})
        return hashlib.sha256(document.encode()).hexdigest()


class Kernel(Record):
    """A kernel."""

    release: str = Field(description="as `uname -r` prints it")
    key: str = Field(description="hash of what it and its modules were built from")
    package: str | None = Field(default=None, description="a distribution's package")


class Module(Record):
    """A kernel module of ours."""

    sha256: str = Field(description="digest of its file")
    revision: str = Field(description="as modinfo shows it")

    @classmethod
    def from_file(cls, path: Path) -> "Module":
        """Read a module's digest and revision."""
        found = re.search(rb"\0revision=([^\0]*)\0", path.read_bytes())
        return cls(sha256=sha256(path), revision=found[1].decode() if found else "unknown")


class Platform(Record):
    """Kernel, modules and clock on which a plan was carried out."""

    backend: str = Field(description="the value of `--backend`, or `multihost`")
    clock_source: ClockSource = Field(
        description="`virtual`: time stands still while the kernel works; `instructions`: time "
        "counts instructions; `host`: the host's clock"
    )
    kernel: Kernel
    qemu: str | None = Field(default=None, description="QEMU's version and accelerator")
    modules: dict[str, Module] = Field(description="by file name")
    sandbox: Literal["bubblewrap", "container"] | None = Field(
        default=None,
        description="the confinement of the backend uml's guest; null for other backends and for "
        "older runs",
    )


class Origin(Record):
    """Versions of the programs that planned and carried out a run."""

    git: str = Field(description="the checkout's revision")
    tools: dict[str, str] = Field(description="versions by name")


class Machine(Document, Platform, Origin):
    """One host of a multi-host run: machine.json among the host's artifacts."""

    schema_: Literal[1] = Field(default=1, description="version of this format: 1")
    nodes: tuple[FileName, ...] = Field(description="the nodes that it played")
    decisive: dict[str, Any] = Field(description="what decides its bytes besides the plan")


class Machines(Platform):
    """The machines of a run, with the hosts of a multi-host run."""

    machines: dict[str, Machine] = Field(default={}, description="hosts by name")


class Nodes(Record):
    """The topology's nodes."""

    hosts: tuple[FileName, ...] = Field(description="they send and receive")
    routers: tuple[FileName, ...] = Field(description="the nodes that forward packets or frames")


class Interface(Record):
    """An interface of a node."""

    node: FileName = Field(description="the node")
    name: FileName = Field(description="NODE-ethN")
    address: str | None = Field(description="IPv4; null for a port of a switch")
    address6: str | None = Field(default=None, description="IPv6; null in a run without IPv6")
    peer: FileName = Field(description="the interface at the link's other end")


class Setting(Record):
    """A sysctl or command of the file, or what a run changes beside the kernel's own defaults."""

    nodes: tuple[FileName, ...] = Field(description="the nodes; none: the whole kernel")
    name: str = Field(description="the sysctl, the offload of interfaces, or `setup`")
    value: str = Field(description="its value, or the command")
    why: str = Field(description="the reason, or the field of the experiment's file")
    instead_of: str | None = Field(
        default=None, description="the preset's or another field's value, over which it wins"
    )


class HostClock(Record):
    """A host's clock relative to the controller's, which is the reference."""

    handed_ns: OffsetNs = Field(
        default=0, description="the offset that the host's programs subtract from their times"
    )
    offset_ns: OffsetNs = Field(
        default=0, description="its offset at the start of traffic, positive if ahead"
    )
    drift_ppb: float = Field(
        default=0.0, gt=-1e8, lt=1e8, description="its drift, parts per billion, positive if faster"
    )
    uncertainty_ns: Duration = Field(
        default=0, description="the largest error of offset and drift at any time of the run"
    )


class Clocks(Record):
    """clock.json: offsets of the clocks of a run without virtual time."""

    offset_ns: OffsetNs = Field(default=0, description="time from the plan's clock to the kernel's")
    nodes: dict[FileName, HostClock] = Field(
        default={}, description="clocks of the hosts of a multi-host run, by the nodes they played"
    )


class Timing(Record):
    """The speed of a run."""

    wall_s: NonNegative = Field(description="duration of the run")
    simulated_s: NonNegative = Field(description="simulated seconds of traffic")
    speed: NonNegative = Field(description="simulated over wall time")


class Happened(Record):
    """An intervention that happened."""

    what: str = Field(description="the intervention, in words")
    packets: Count = Field(description="packets with another fate; 0 for a change of settings")
    time_ns: Nanoseconds = Field(description="when, or when first, ns on the plan's clock")


class Intervened(Record):
    """A run's interventions, beside the run of the same experiment without any."""

    original: FileName = Field(description="name of the run without interventions")
    equal_until_ns: Nanoseconds = Field(
        description="the first intervention: before it, all captures of both runs are equal to "
        "the byte; ns on the plan's clock"
    )
    happened: tuple[Happened, ...]


class Manifest(Described, Machines, Origin):
    """A finished run, written once."""

    run: FileName = Field(description="the run's name, that of its folder")
    identity: str = Field(description="runs with the same identity have the same captures")
    nodes: Nodes
    interfaces: tuple[Interface, ...]
    queues: tuple[Queue, ...]
    connections: tuple[Connection, ...]
    datagrams: tuple[DatagramFlow, ...] = ()
    programs: tuple[ProgramRun, ...] = Field(default=(), description="those that it names")
    settings: tuple[Setting, ...] = Field(
        default=(),
        description="sysctls of the experiment's file, and what else the run changes where the "
        "kernel's own defaults hold (preset `linux`)",
    )
    not_proven: tuple[NotProven, ...] = Field(default=(), description="what no check proves")
    interventions: Intervened | None = Field(
        default=None, description="what the interventions did; null without any"
    )
    captures: dict[FileName, Literal["in", "out", "inout"]] = Field(description="by interface")
    clock_offset_ns: OffsetNs = Field(default=0, description="the kernel's clock minus the plan's")
    clocks: dict[FileName, HostClock] = Field(
        default={}, description="clocks of the hosts that played nodes, by node"
    )
    capture_drops: dict[FileName, Count] = Field(
        description="packets that captures lost, by interface"
    )
    files: tuple[FilePath, ...] = Field(description="the run's artifacts")
    digests: dict[FilePath, str] = Field(
        default={}, description="sha256 of each artifact; empty in older runs"
    )
    timing: Timing

    @property
    def repetition(self) -> int | None:
        """The seed of this repetition; None for a run that is no repetition."""
        return None if SEED in self.experiment.matrix else self.point.get(SEED)

    def list_damaged(self, folder: Path) -> list[str]:
        """List the artifacts in the run's folder that are missing or have changed.

        Captures that were left out do not count as missing, nor samples left out with them.
        """
        gone = [f"{name}/" for name in (CAPTURES, SAMPLES) if not os.path.lexists(folder / name)]
        out = tuple(gone) if without_captures(folder) else ()
        return [
            name
            for name in self.files
            if not name.startswith(out) and not self._is_whole(folder, name)
        ]

    def _is_whole(self, folder: Path, name: str) -> bool:
        try:
            with open_run_file(folder, name) as file:
                return name not in self.digests or digest_of(file) == self.digests[name]
        except OSError:
            return False

    @property
    def intervened(self) -> list[str]:
        """List what the run's interventions did, and until when it equals the original."""
        did, start_ns = self.interventions, self.clock.start_ns
        if did is None:
            return []
        lines = [(each.time_ns - start_ns, each.what) for each in did.happened]
        until_s = (did.equal_until_ns - start_ns) / 1e9
        return [
            *(f"at {ns / 1e9:.9f} s: {what}" for ns, what in lines),
            f"before {until_s:.9f} s all captures equal those of the original, {did.original}",
        ]

    @property
    def lost_by_captures(self) -> str:
        """Write which captures lost packets, with the numbers; empty if none did."""
        lost = [f"{name} {packets}" for name, packets in self.capture_drops.items() if packets]
        return ", ".join(lost)

    def describes(self, described: Described) -> bool:
        """Tell whether the run's description of the experiment is the same."""
        return all(getattr(self, name) == value for name, value in described)


def without_captures(folder: Path) -> bool:
    """Tell whether all captures of a run were left out."""
    return not os.path.lexists(folder / CAPTURES)


def captures_left_out(folder: Path, name: str) -> str:
    """Write that a run's captures were left out, and how to make them again.

    Args:
        folder: the run's folder.
        name: the experiment's or point's id.
    """
    command = f"twoway run {shlex.quote(name)}"
    return f"{folder}: its captures were left out: `{command}` makes them again"


def read_manifest(folder: Path) -> Manifest:
    """Read a run's manifest.json, updated with experiment.json if any.

    Raises: ValueError with a sentence if the folder has no manifest, or a document is invalid.
    """
    try:
        manifest = Manifest.read(folder / MANIFEST)
    except OSError as error:
        raise ValueError(f"{folder}: no {MANIFEST}: not a finished run") from error
    try:
        return manifest.model_copy(update=dict(Described.read(folder / EXPERIMENT)))
    except FileNotFoundError:
        return manifest
