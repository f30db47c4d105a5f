"""Experiments and link profiles: what their files say, checked before anything starts.

Units are part of each field's name. Unknown keys are errors, and all errors of a file are
reported at once.
"""

import difflib
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import yaml
from pydantic import BaseModel, Field, ValidationError
from pydantic_core import ErrorDetails

from twoway.congestion import CONTROLS, PARAMETER_FIELDS
from twoway.dtm import SLOT_MBIT, Channel
from twoway.errors import SpecError
from twoway.model import Model, Name, NonNegative, Positive

ModelT = TypeVar("ModelT", bound=Model)


class Direction(Model):
    """One direction of a link: rate and queue at one hop, delay at another."""

    rate_mbit: Annotated[float, Field(ge=0.001, le=100_000)] | None = Field(
        default=None, description="link rate in Mbit/s (10^6 bit/s), unless it is a dtm channel"
    )
    dtm: Channel | None = Field(
        default=None, description="a channel of a DTM network, instead of a rate_mbit"
    )
    queue_packets: Annotated[int, Field(ge=1)] = Field(
        description="drop-tail limit in packets, the one in service included"
    )
    delay_ms: Annotated[float, Field(ge=0, le=100_000)] = Field(
        description="propagation delay in ms, from the end of transmission to arrival"
    )
    overhead_bytes: int = Field(
        default=0,
        ge=-53,  # an ACK's frame has 54 bytes
        le=1024,
        description="added to each frame's size (Ethernet header included) to get its size on "
        "the link; -14 charges the IP packet alone",
    )
    cell_bytes: Annotated[int, Field(ge=0)] = Field(
        default=0, description="payload of a link cell (ATM: 48); 0 for none"
    )
    cell_overhead_bytes: Annotated[int, Field(ge=0)] = Field(
        default=0, description="header of a link cell (ATM: 5)"
    )

    @property
    def start_mbit(self) -> float:
        """The link's rate at the start of traffic."""
        return self.rate_mbit or (self.dtm or Channel()).slots * SLOT_MBIT

    @property
    def least_mbit(self) -> float:
        """The lowest rate that the link may have."""
        return self.rate_mbit or (self.dtm or Channel()).min_slots * SLOT_MBIT

    @property
    def most_mbit(self) -> float:
        """The highest rate that the link may have."""
        return self.rate_mbit or (self.dtm or Channel()).max_slots * SLOT_MBIT

    def link_bytes(self, frame_bytes: int) -> int:
        """Size on the link of a frame, Ethernet header included."""
        size = frame_bytes + self.overhead_bytes
        if not self.cell_bytes:
            return size
        return -(-size // self.cell_bytes) * (self.cell_bytes + self.cell_overhead_bytes)


class Profile(Model):
    """Link behaviour, without node names: `tc-profiles/<name>.yml`."""

    schema_version: Literal[1] = Field(alias="schema", description="version of this format: 1")
    title: str = Field(description="one line for people")
    directions: dict[Name, Direction] = Field(
        description="named as the topology names its directions"
    )


class TopologyRef(Model):
    """The Mininet topology: `topologies/<name>.py`."""

    name: Name = Field(description="file stem under topologies/")
    parameters: dict[str, int] = Field(default={}, description="passed to the topology's build()")


class Stack(Model):
    """The TCP stack's personality: the same on every host."""

    mtu_bytes: Annotated[int, Field(ge=88, le=65535)] = Field(
        default=1500, description="IP packet size limit of every interface"
    )
    timestamps: bool = Field(default=False, description="TCP timestamps (12 bytes a segment)")
    sack: bool = Field(default=True, description="selective acknowledgements")
    acks: Literal["every-segment", "delayed"] = Field(
        default="every-segment", description="when the receiver acknowledges"
    )
    tail_loss_probe: bool = Field(
        default=True,
        description="probe for a lost tail after two round trips; off for the papers' TCP",
    )
    rack: bool = Field(
        default=True,
        description="detect loss by time (RACK) where there is sack; off for the papers' TCP",
    )
    spurious_timeout_detection: bool = Field(
        default=True,
        description="F-RTO: doubt a timeout before sending all again; off for the papers' TCP",
    )
    least_timeout_ms: Annotated[int, Field(ge=1, le=120_000)] = Field(
        default=200,
        description="what the retransmission timer adds to the round-trip time at least",
    )
    initial_window_packets: Annotated[int, Field(ge=1, le=1000)] = Field(
        default=10, description="initial window of flows whose congestion control has none"
    )
    receive_buffer_bytes: Annotated[int, Field(ge=65536, le=1 << 29)] = Field(
        default=1 << 24, description="SO_RCVBUF of sinks; the kernel doubles it"
    )

    @property
    def segment_bytes(self) -> int:
        """Payload of a full segment."""
        return self.mtu_bytes - 40 - (12 if self.timestamps else 0)


class Flow(Model):
    """TCP connections with unlimited data from one host to another."""

    name: Name = Field(description="as it appears in metrics")
    from_: str = Field(alias="from", description="host that sends data")
    to: str = Field(description="host that receives it")
    count: Annotated[int, Field(ge=1, le=1000)] = Field(
        default=1, description="how many such connections"
    )
    start_s: NonNegative = Field(default=0, description="first data, after the traffic's start")
    congestion: Literal["fixed", "fast", "tahoe", "tahoe_rto", "reno", "cubic", "bbr", "vegas"] = (
        Field(
            description="congestion control; `fixed` (with window_packets), `fast` (with "
            "alpha_packets), `tahoe` and `tahoe_rto` are our kernel modules"
        )
    )
    window_packets: Annotated[int, Field(ge=1, le=65535)] | None = Field(
        default=None, description="the constant window of `fixed`, in segments"
    )
    alpha_packets: Annotated[int, Field(ge=1, le=65535)] | None = Field(
        default=None, description="segments that a flow of `fast` keeps queued in the path"
    )
    rate_mbit: Positive | None = Field(
        default=None,
        description="constant rate in Mbit/s of full IP packets; unlimited data by default",
    )
    generator: Literal["stream", "iperf3"] = Field(
        default="stream",
        description="`stream` (our blocking source and sink) or `iperf3`",
    )


class Observe(Model):
    """What to sample besides the captures."""

    tcp_info_ms: Annotated[float, Field(ge=0.01)] = Field(
        default=10, description="interval of TCP_INFO and queue samples, in simulated ms"
    )


class Expectation(Model):
    """What must come out."""

    metric: str = Field(description="a name from metrics.json")
    value: float = Field(description="expected value, in the metric's unit")
    tolerance: NonNegative = Field(description="largest difference that passes, same unit")
    source: Literal["theory", "paper"] = Field(description="who says so")
    why: str = Field(description="where value and tolerance come from")


class Source(Model):
    """The paper an experiment reproduces."""

    paper: str = Field(description="authors, title, year")
    where: str = Field(description="section and figure")


class Experiment(Model):
    """One question put to the network: `experiments/<id>.yml`."""

    schema_version: Literal[1] = Field(alias="schema", description="version of this format: 1")
    title: str = Field(description="one line for people")
    source: Source | None = Field(default=None, description="the paper it comes from, if any")
    summary: str = Field(description="what is measured, and why Linux differs where it does")
    topology: TopologyRef
    profile: Name = Field(description="file stem under tc-profiles/")
    stack: Stack = Stack()
    flows: Annotated[list[Flow], Field(min_length=1)]
    modules: dict[str, dict[str, int | str]] = Field(
        default={}, description="parameters of the kernel modules in use, by module name"
    )
    duration_s: Annotated[float, Field(ge=0.001, le=10_000_000)] = Field(
        description="simulated seconds of traffic"
    )
    warm_up_s: NonNegative = Field(description="left out of every metric")
    observe: Observe = Observe()
    expect: list[Expectation] = []


def load_experiment(path: Path) -> Experiment:
    """Read and check one experiment file.

    Raises: SpecError with every problem of the file.
    """
    experiment = _load(path, Experiment)
    problems = [f"{path}: {problem}" for problem in _experiment_problems(experiment)]
    if problems:
        raise SpecError(problems)
    return experiment


def load_profile(path: Path) -> Profile:
    """Read and check one link profile.

    Raises: SpecError with every problem of the file.
    """
    profile = _load(path, Profile)
    problems = [
        f"{path}: directions.{name}{problem}"
        for name, direction in profile.directions.items()
        for problem in _direction_problems(direction)
    ]
    if problems:
        raise SpecError(problems)
    return profile


def _direction_problems(direction: Direction) -> list[str]:
    problems = []
    if (direction.rate_mbit is None) == (direction.dtm is None):
        given = "neither" if direction.dtm is None else "both"
        problems.append(f": rate_mbit or dtm says how fast it is; got {given}")
    if direction.dtm is not None:
        problems += [f".dtm{problem}" for problem in direction.dtm.problems()]
        if direction.cell_bytes:
            problems.append(f".cell_bytes: a dtm channel has no cells, got {direction.cell_bytes}")
    return problems


def _experiment_problems(experiment: Experiment) -> list[str]:
    problems = []
    if experiment.warm_up_s >= experiment.duration_s:
        problems.append(
            f"warm_up_s: must be below duration_s ({experiment.duration_s:g}), "
            f"got {experiment.warm_up_s:g}"
        )
    seen: set[str] = set()
    for index, flow in enumerate(experiment.flows):
        if flow.name in seen:
            problems.append(f'flows.{index}.name: "{flow.name}" is used twice')
        seen.add(flow.name)
        problems += [f"flows.{index}{p}" for p in _flow_problems(flow, experiment)]
    return problems + _module_problems(experiment)


def _module_problems(experiment: Experiment) -> list[str]:
    problems = []
    controls = {flow.congestion: CONTROLS[flow.congestion] for flow in experiment.flows}
    for control in controls.values():
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
    used = sorted({control.module for control in controls.values() if control.module})
    problems += [
        f"modules.{name}: no flow uses it; in use: {', '.join(used) or 'none'}"
        for name in experiment.modules
        if name not in used
    ]
    return problems


def _flow_problems(flow: Flow, experiment: Experiment) -> list[str]:
    problems = []
    seconds = experiment.duration_s - flow.start_s
    if seconds <= 0:
        problems.append(
            f".start_s: must be below duration_s ({experiment.duration_s:g}), got {flow.start_s:g}"
        )
    elif flow.generator == "iperf3" and seconds != int(seconds):
        problems.append(f": iperf3 runs for whole seconds; duration_s less start_s is {seconds:g}")
    if flow.rate_mbit is not None and flow.generator != "stream":
        problems.append(
            f'.rate_mbit: only generator: stream sends at a constant rate, got "{flow.generator}"'
        )
    needed = CONTROLS[flow.congestion].field
    for field in PARAMETER_FIELDS:
        value = getattr(flow, field)
        if field == needed and value is None:
            problems.append(f".{field}: required with congestion: {flow.congestion}")
        if field != needed and value is not None:
            takers = [name for name, control in CONTROLS.items() if control.field == field]
            problems.append(
                f".{field}: only congestion: {', '.join(takers)} takes it, "
                f'got {value} with "{flow.congestion}"'
            )
    if flow.window_packets is not None:
        problems += _window_problems(flow.window_packets, experiment.stack)
    return problems


def _window_problems(window_packets: int, stack: Stack) -> list[str]:
    window_bytes = window_packets * stack.mtu_bytes
    # Half of SO_RCVBUF: the sink leaves up to 1 MiB unread, and buffers hold headers too.
    if window_bytes <= stack.receive_buffer_bytes // 2:
        return []
    problem = (
        f".window_packets: {window_packets} segments of {stack.mtu_bytes} bytes need "
        f"{window_bytes} bytes; half of stack.receive_buffer_bytes "
        f"({stack.receive_buffer_bytes // 2}) is what the receiver can offer"
    )
    return [problem]


class _Loader(yaml.SafeLoader):
    """YAML without duplicate keys, of which YAML would silently keep the last."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
        for key, _ in node.value:
            if keys.count(key.value) > 1 and key.value != "<<":
                raise yaml.constructor.ConstructorError(
                    None, None, f'"{key.value}" is given twice', key.start_mark
                )
        return super().construct_mapping(node, deep)


def _load(path: Path, model: type[ModelT]) -> ModelT:
    try:
        document = yaml.load(path.read_text(encoding="utf-8"), _Loader)  # noqa: S506 - a SafeLoader
    except UnicodeDecodeError as error:
        raise SpecError([f"{path}: not UTF-8: {error.reason} at byte {error.start}"]) from error
    except yaml.YAMLError as error:
        raise SpecError([f"{path}: not YAML: {' '.join(str(error).split())}"]) from error
    except OSError as error:
        raise SpecError([f"{path}: {error.strerror}"]) from error
    if not isinstance(document, dict):
        raise SpecError([f"{path}: must be a mapping of fields, got {type(document).__name__}"])
    try:
        return model.model_validate(document)
    except ValidationError as error:
        problems = [f"{path}: {_sentence(detail, model)}" for detail in error.errors()]
        kind = model.__name__.lower()
        raise SpecError(problems, f"`twoway schema {kind}` describes every field") from error


def _sentence(detail: ErrorDetails, model: type[BaseModel]) -> str:
    where = ".".join(str(part) for part in detail["loc"] if part != "[key]")
    match detail["type"]:
        case "extra_forbidden":
            return f"{where}: unknown field{_suggestion(detail, model)}"
        case "missing":
            return f"{where}: required"
        case _:
            message = detail["msg"].replace("Input should be", "must be")
            return f"{where}: {message}, got {detail['input']!r}"


def _suggestion(detail: ErrorDetails, model: type[BaseModel]) -> str:
    """The known field most like the unknown one, from anywhere in the document."""
    known: set[str] = set()
    _collect_fields(model.model_json_schema(by_alias=True), known)
    close = difflib.get_close_matches(str(detail["loc"][-1]), sorted(known), n=1)
    return f'; did you mean "{close[0]}"?' if close else ""


def _collect_fields(schema: Any, known: set[str]) -> None:
    if isinstance(schema, dict):
        properties = schema.get("properties")
        if isinstance(properties, dict):
            known.update(properties)
        for value in schema.values():
            _collect_fields(value, known)
    elif isinstance(schema, list):
        for value in schema:
            _collect_fields(value, known)
