"""The fields of experiments and link profiles.

Units are part of each field's name. Unknown keys are errors, and all errors of a file are
reported at once.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Field, create_model, model_validator

from twoway.contract.expression import DerivedByName
from twoway.contract.model import Model, Name, NonNegative, Positive, Whole, text
from twoway.contract.network import IpVersion, whole_ns
from twoway.description.congestion import CONTROLS, KERNELS_OWN
from twoway.description.datagrams import Datagrams
from twoway.description.draws import traffic_seed
from twoway.description.figures import Scatter
from twoway.description.interventions import MOST_INTERVENTIONS, Intervention
from twoway.description.matrix import Axis
from twoway.description.own_setup import SetupLine, setup_lines
from twoway.description.programs import HostProgram
from twoway.description.socket_options import SocketOptions
from twoway.description.stack import HostSettings, RouterSettings, Stack, with_stacks
from twoway.description.statements import Claimed, Found, Predicted, Statement, Unclaimed
from twoway.description.sysctls import OF_KERNEL, in_order
from twoway.description.traffic.registry import kinds
from twoway.description.traffic.traffic import Span, Traffic
from twoway.links.direction import Direction
from twoway.links.dtm import Slots
from twoway.links.half_duplex import HalfDuplex
from twoway.links.tc_words import TcWords

# No spaces and quotes: the kernel interprets these in a module's parameters.
ModuleValue = Annotated[
    str, text(r"^[A-Za-z0-9_.,:+-]+$", "of letters, digits and _ . , : + -", most=256)
]

MOST_SEEDS = 1000

# The kernel's limit, TCP_CA_NAME_MAX, includes the terminating zero.
CongestionName = Annotated[
    str,
    text(r"^[A-Za-z0-9_.-]+$", "of letters, digits and _ . -", most=15),
    Field(json_schema_extra={"examples": [*CONTROLS]}),
]


class Profile(Model):
    """Link behaviour, without node names: `tc-profiles/<name>.yml`."""

    schema_version: Literal[1] = Field(alias="schema", description="version of this format: 1")
    title: str = Field(description="one line for people")
    directions: dict[Name, Direction] = Field(
        description="named as the topology names its directions"
    )
    half_duplex: HalfDuplex | None = Field(default=None, description=HalfDuplex.DESCRIPTION)
    pools: dict[Name, Slots] = Field(
        default={},
        description="pools of slots that DTM channels share: the number of slots, by the "
        "pool's name",
    )

    @property
    def guest_only(self) -> tuple[str, ...]:
        """The fields that need the guest of user-mode Linux."""
        shared = (field for field, value in self if getattr(value, "needs_guest", False))
        of_one = (
            f"directions.{name}.{element.FIELD}"
            for name, direction in self.directions.items()
            for element in direction.elements
            if element.needs_guest
        )
        return (*shared, *of_one)


class TopologyRef(Model):
    """The Mininet topology: `topologies/<name>.py`."""

    name: Name = Field(description="file stem under topologies/")
    parameters: dict[Name, Whole] = Field(
        default={}, description="passed to the topology's build()"
    )


def _by_name(given: Any) -> Any:
    return {"name": given} if isinstance(given, str) else given


# A topology; one without parameters may be given by its name alone.
Named = Annotated[TopologyRef, BeforeValidator(_by_name, json_schema_input_type=TopologyRef | Name)]


class Connections(Model):
    """TCP connections from one host to another."""

    name: Name = Field(description="as it appears in metrics")
    from_: str = Field(alias="from", description="host that sends data")
    to: str = Field(description="host that receives it")
    count: Annotated[int, Field(ge=0, le=1000)] = Field(
        default=1, description="how many such connections; a sweep may have points with none"
    )
    start_s: NonNegative = Field(
        default=0, description="time of the first data, after the traffic's start"
    )
    stop_s: Positive | None = Field(
        default=None,
        description="time of the reset that ends the "
        "flow, after the traffic's start; by default the "
        "end of traffic",
    )
    connect: Literal["before", "at-start"] | None = Field(
        default=None,
        description="when the connection is set up: `before` all traffic, at zero load, or "
        "`at-start` of its own data, in the queues of others, as a program's; by default "
        "`at-start` if the sender's stack is `linux`, else `before`",
    )
    congestion: CongestionName = Field(
        description="congestion control: any of the kernel's own, one of our kernel modules "
        "(`bbr3`, `fixed` with window_packets, `fast` with alpha_packets, `prague`, `tahoe`, "
        "`tahoe_rto`), or one that a module under `modules` registers"
    )
    window_packets: Annotated[int, Field(ge=1, le=65535)] | None = Field(
        default=None, description="the constant window of `fixed`, in segments"
    )
    alpha_packets: Annotated[int, Field(ge=1, le=65535)] | None = Field(
        default=None, description="segments that a flow of `fast` keeps queued in the path"
    )
    ip: IpVersion | None = Field(default=None, description="version of IP; by default stack.ip")
    socket: SocketOptions = Field(
        default=SocketOptions(), description="options of its sockets, as a program would set them"
    )


Parameters = dict[Name, Whole | ModuleValue]

# A flow has a field for every kind of traffic, and for every control of the kernel with parameters;
# mypy does not accept a computed base.
if TYPE_CHECKING:
    TrafficFields = Connections
else:
    TrafficFields = create_model(
        "TrafficFields",
        __base__=Connections,
        **{
            name: (kind | None, Field(default=None, description=kind.DESCRIPTION))
            for name, kind in kinds().items()
        },
        **{
            name: (
                Parameters | None,
                Field(default=None, description=f"parameters of {name}, such as {known[0]}"),
            )
            for name, known in KERNELS_OWN.items()
            if known
        },
    )


class Flow(TrafficFields):
    """TCP connections from one host to another, with unlimited data unless a traffic is given."""

    @property
    def connection_names(self) -> list[str]:
        """The names of its connections, unless its traffic gives them other numbers."""
        if self.count == 1:
            return [self.name]
        return [f"{self.name}-{number}" for number in range(1, self.count + 1)]

    @property
    def controls(self) -> dict[str, Parameters]:
        """The parameters given for controls of the kernel, by the control."""
        given = {name: getattr(self, name) for name, known in KERNELS_OWN.items() if known}
        return {name: value for name, value in given.items() if value is not None}

    @property
    def traffics(self) -> dict[str, Traffic]:
        """The traffic given instead of unlimited data, by its field; at most one."""
        values = {name: getattr(self, name) for name in kinds()}
        return {name: value for name, value in values.items() if value is not None}

    @property
    def traffic(self) -> Traffic | None:
        """The kind of traffic; None for unlimited data."""
        return next(iter(self.traffics.values()), None)


class Observe(Model):
    """The samples to take besides captures."""

    tcp_info_ms: Annotated[float, Field(ge=0.01, le=3_600_000)] | None = Field(
        default=None,
        description="interval of TCP_INFO and queue samples, in simulated ms; by default 10, or a "
        "tenth of the number of connections if that is more",
    )
    sampler: Literal["program", "kernel"] | None = Field(
        default=None,
        description="what takes the samples: our program, or our module `twoway_testbed`, which "
        "writes the same rows in less time, but in virtual time only; by default `kernel` in "
        "virtual time, else `program`",
    )


class Source(Model):
    """The paper an experiment reproduces."""

    paper: str = Field(description="file stem under papers/; or authors, title, year")
    where: str = Field(description="section and figure")


# Fields that no experiment has from its base: its texts, its points and the statements on them.
OWN_FIELDS = (
    *("title", "summary", "matrix", "metrics", "figures"),
    *("predictions", "claims", "findings", "unclaimed"),
)


def _with_base(schema: dict[str, Any]) -> None:
    """Add the field of an experiment's file that its reading resolves."""
    set_up = [name for name in schema["required"] if name not in ("schema", "title")]
    schema["required"] = ["schema", "title"]
    schema["anyOf"] = [{"required": ["base"]}, {"required": set_up}]
    schema["properties"]["base"] = {
        "type": "string",
        "description": "an experiment beside this file, without a base of its own: this one has "
        "its fields, as a JSON merge patch changes them (null removes one); not its "
        f"{', '.join(OWN_FIELDS)}. Editors mark null, and mappings that only the base makes whole",
    }


class Experiment(Model):
    """One question put to the network: `experiments/<folder>/<id>.yml`."""

    model_config = ConfigDict(json_schema_extra=_with_base)

    schema_version: Literal[1] = Field(alias="schema", description="version of this format: 1")
    title: str = Field(description="one line for people")
    source: Source | None = Field(default=None, description="the paper it comes from, if any")
    summary: str = Field(
        default="", description="what is measured, and why Linux differs where it does"
    )
    topology: Named
    profile: Name | dict[str, Any] = Field(
        description="file stem under tc-profiles/ or beside this file; or a profile's own fields, "
        "without `schema` and `title` if you like"
    )
    stack: Stack = Stack()
    hosts: dict[Name, HostSettings] = Field(
        default={}, description="settings of single hosts, by the host's name"
    )
    routers: dict[Name, RouterSettings] = Field(
        default={}, description="settings of single routers, by the router's name"
    )
    flows: Annotated[list[Flow], Field(max_length=1000)] = Field(
        default=[], description="TCP connections of our own sources and sinks"
    )
    datagrams: Annotated[list[Datagrams], Field(max_length=100)] = Field(
        default=[], description="UDP flows between hosts"
    )
    programs: Annotated[list[HostProgram], Field(max_length=100)] = Field(
        default=[], description="programs of the host's file system, such as curl"
    )
    modules: dict[Name, Parameters] = Field(
        default={},
        description="parameters of the kernel modules in use, by module name; of the kernel's own "
        "controls, too, as tcp_cubic",
    )
    own_modules: list[Annotated[str, Field(min_length=1, max_length=256)]] = Field(
        default=[],
        description="kernel modules of one's own, built for the guest and loaded: paths from the "
        "experiment's file to a C file, or to a folder with a Kbuild",
    )
    interventions: Annotated[list[Intervention], Field(max_length=MOST_INTERVENTIONS)] = Field(
        default=[],
        description="changes to a run, in virtual time: until the first of them the captures are "
        "those of the same experiment without any",
    )
    duration_s: Annotated[float, Field(ge=0.001, le=10_000_000)] = Field(
        description="simulated seconds of traffic"
    )
    warm_up_s: NonNegative = Field(description="time at the start that every metric leaves out")
    seed: Annotated[int, Field(ge=1, le=2**32 - 1)] = Field(
        default=1,
        description="seed of the kernel's random numbers, in virtual time: another seed "
        "draws other "
        "losses (and other random events), equally often",
    )
    seeds: Annotated[int, Field(ge=1, le=MOST_SEEDS)] | None = Field(
        default=None,
        description="repetitions of each point, with the seeds from 1 to this; each "
        "draws anew what "
        "is random: losses, starts of flows, ports, random traffic; by default none",
    )
    start_jitter_ms: Annotated[float, Field(ge=0, le=60_000)] = Field(
        default=100,
        description="in repetitions a flow starts later by a random time, at most this and at most "
        "a tenth of its duration; 0 for starts as the file has them",
    )
    kernel: (
        Annotated[
            str,
            text(
                r"^(guest|wide|newest|6\.1|/.*)$",
                "guest, wide, newest, 6.1 or an absolute path",
                most=256,
            ),
        ]
        | None
    ) = Field(
        default=None,
        description="what the backend `uml` runs: `guest`, the kernel of `make setup`; `wide`, "
        "which also has MPTCP, tunnels, netfilter and every qdisc; `newest`, Debian's newest; "
        "`6.1`, Debian 12's; or the path of an unpacked source; by default what `--kernel` says",
    )
    capture: Literal["tcpdump", "kernel"] | None = Field(
        default=None,
        description="what writes the captures: `tcpdump`, or our module `twoway_testbed`, which "
        "writes the same bytes in less time, but in virtual time only; by default `kernel` in "
        "virtual time, else `tcpdump`",
    )
    observe: Observe = Observe()
    theory: Name | None = Field(
        default=None, description="the theory that computes the numbers given as `theory`"
    )
    matrix: dict[Name, Axis] = Field(
        default={}, description="a sweep: its axes; every combination of their values is run"
    )
    metrics: Annotated[DerivedByName, Field(max_length=50)] = Field(
        default={},
        description="metrics computed from others, by name, such as "
        "`share: goodput.bbr / sum(goodput.*)`",
    )
    figures: Annotated[list[Scatter], Field(max_length=20)] = Field(
        default=[], description="figures that come first on the sweep's page"
    )
    predictions: list[Predicted] = Field(
        default=[], description="what this project's theory says; a miss fails the run"
    )
    claims: list[Claimed] = Field(default=[], description="what the paper prints")
    findings: list[Found] = Field(default=[], description="what runs showed; exploratory")
    unclaimed: list[Unclaimed] = Field(
        default=[], description="points without a statement, and the reason"
    )

    _stacks = model_validator(mode="before")(with_stacks)

    @property
    def parameters(self) -> dict[str, Parameters]:
        """Parameters by module: those of `modules`, and of flows' controls."""
        found = dict(self.modules)
        for flow in self.flows:
            for control, given in flow.controls.items():
                found[f"tcp_{control}"] = {**found.get(f"tcp_{control}", {}), **given}
        return found

    def stack_of(self, node: str) -> Stack:
        """Return a node's stack; that of routers and switches is the experiment's."""
        return self.settings_of(node).stack

    def settings_of(self, node: str) -> HostSettings:
        """Return a host's settings; those of routers and switches are the experiment's stack."""
        return self.hosts.get(node) or HostSettings(stack=self.stack)

    def qdisc_of(self, node: str) -> TcWords | None:
        """Return the qdisc that the file gives a host's or a router's own interfaces."""
        settings = self.routers.get(node) or self.hosts.get(node)
        return settings.qdisc if settings else None

    @property
    def has_gso(self) -> bool:
        """True if a host sends packets of many segments whole."""
        return any(host.gso for host in self.hosts.values())

    def sysctls_of(self, node: str | None, *, router: bool) -> Mapping[str, int | str]:
        """Return the sysctls that the file gives a node, or the whole kernel if none is named."""
        if node is None:
            return {n: value for n, value in self.stack.sysctls.items() if n in OF_KERNEL}
        if not router:
            own = self.stack_of(node).sysctls
        else:
            own = self.routers[node].sysctls if node in self.routers else {}
        return in_order({n: value for n, value in own.items() if n not in OF_KERNEL})

    @property
    def setup_lines(self) -> Iterator[SetupLine]:
        """The commands by which the file sets up hosts and routers, in order."""
        return setup_lines({"hosts": self.hosts, "routers": self.routers})

    @property
    def stacks(self) -> list[Stack]:
        """All stacks that hosts may have."""
        return [self.stack, *(host.stack for host in self.hosts.values())]

    @property
    def has_ecn(self) -> bool:
        """True if connections may ask for ECN."""
        silent = (None, False, "accept", "accecn-accept")
        return any(e.ecn not in silent or "net.ipv4.tcp_ecn" in e.sysctls for e in self.stacks)

    @property
    def repetition(self) -> int:
        """The seed of this repetition; 1 for an experiment that is no repetition."""
        return self.seed if self.seeds else 1

    @property
    def statements(self) -> dict[str, Sequence[Statement]]:
        """All statements on metrics, by the field that holds them."""
        return {"predictions": self.predictions, "claims": self.claims, "findings": self.findings}

    def span(self, flow: Flow, connection: str | None = None) -> Span:
        """Return the duration, packet sizes and seed that a flow's kind of traffic needs.

        Args:
            flow: the flow.
            connection: the name of one of its connections; None for the flow itself.
        """
        stop_s, ends = flow.stop_s or self.duration_s, (flow.from_, flow.to)
        # Connections have time stamps if both ends have them.
        segment_bytes = max(self.stack_of(end).segment_bytes(self.ip_of(flow)) for end in ends)
        seconds = (whole_ns(stop_s) - whole_ns(flow.start_s)) / 1e9
        given = flow.traffic.given_seed if flow.traffic else None
        seed = traffic_seed(self.seed, connection or flow.name, given)
        return Span(seconds, self.stack.mtu_bytes, segment_bytes, seed)

    def ip_of(self, flow: Flow | Datagrams) -> IpVersion:
        """Return a flow's version of IP."""
        return flow.ip or self.stack.ip

    @property
    def has_ipv6(self) -> bool:
        """True if anything in the experiment uses IPv6."""
        used = [self.stack.ip, *(f.ip for f in self.flows), *(d.ip for d in self.datagrams)]
        return 6 in used
