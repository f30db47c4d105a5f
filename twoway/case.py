"""An experiment with everything it refers to: topology, profile, connections; all checked."""

import difflib
import hashlib
import json
import re
from collections import deque
from dataclasses import dataclass
from pathlib import Path

from capture_analysis.testbed.names import metric_names

from twoway.congestion import CONTROLS
from twoway.errors import SpecError
from twoway.paths import EXPERIMENTS, PROFILES, ROOT, TOPOLOGIES
from twoway.shaping import Shaper, compile_profile
from twoway.spec import Experiment, Flow, Profile, load_experiment, load_profile
from twoway.topology import Graph, Interface, load_topology

# What the results folder uses for other things.
_RESERVED_IDS = ("latest", "calibration")
FIRST_PORT = 5001
FIRST_SOURCE_PORT = 40001


@dataclass(frozen=True)
class Connection:
    """One TCP connection of a flow.

    Attributes:
        flow: what it is one of.
        name: as in metrics.
        index: which gives it its ports.
        direction: the slowest that its data passes.
        ack_direction: the slowest that its acknowledgements pass.
    """

    flow: Flow
    name: str
    index: int
    direction: str
    ack_direction: str

    @property
    def port(self) -> int:
        """The sink's port."""
        return FIRST_PORT + self.index

    @property
    def source_port(self) -> int:
        """The source's port."""
        return FIRST_SOURCE_PORT + self.index

    @property
    def congestion(self) -> str:
        """The congestion control's name in the kernel."""
        field = CONTROLS[self.flow.congestion].field
        return f"{self.flow.congestion}{getattr(self.flow, field) if field else ''}"


@dataclass(frozen=True)
class Case:
    """An experiment with everything it refers to, checked."""

    id: str
    experiment: Experiment
    profile: Profile
    graph: Graph
    shapers: tuple[Shaper, ...]
    connections: tuple[Connection, ...]


def find_experiment(name: str) -> Path:
    """The file of an experiment given by id or by path.

    Raises: SpecError if there is none.
    """
    path = Path(name) if name.endswith((".yml", ".yaml")) else EXPERIMENTS / f"{name}.yml"
    if not path.is_file():
        raise SpecError([f"{name}: no such experiment"], "`twoway list` shows those there are")
    return path


def find_profile(name: str) -> Path:
    """The file of a link profile.

    Raises: SpecError if there is none.
    """
    path = PROFILES / f"{name}.yml"
    if not path.is_file():
        known = ", ".join(sorted(p.stem for p in PROFILES.glob("*.yml")))
        raise SpecError([f"{path.relative_to(ROOT)}: no such profile"], f"there are: {known}")
    return path


def load_case(name: str) -> Case:
    """Read an experiment and all it refers to.

    Raises: SpecError with every problem found.
    """
    path = find_experiment(name)
    if path.stem in _RESERVED_IDS or not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", path.stem):
        raise SpecError([f'{path}: "{path.stem}" cannot be an experiment\'s id'])
    shown = path.relative_to(ROOT) if path.is_relative_to(ROOT) else path
    return make_case(str(shown), path.stem, load_experiment(path))


def make_case(where: str, name: str, experiment: Experiment) -> Case:
    """An experiment together with all it refers to.

    Args:
        where: the experiment's file or origin, for errors.
        name: its id.
        experiment: what it says.

    Raises: SpecError with every problem found.
    """
    problems: list[str] = []
    topology_path = TOPOLOGIES / f"{experiment.topology.name}.py"
    graph = profile = None
    try:
        graph = load_topology(topology_path, experiment.topology.parameters)
        problems += [f"{where}: {p}" for p in _unknown_hosts(experiment, graph)]
    except SpecError as error:
        problems += [f"{where}: topology: {problem}" for problem in error.problems]
    try:
        profile = load_profile(find_profile(experiment.profile))
    except SpecError as error:
        problems += [f"{where}: profile: {problem}" for problem in error.problems]
    if problems or graph is None or profile is None:
        raise SpecError(problems)
    shapers = compile_profile(f"tc-profiles/{experiment.profile}.yml", profile, graph)
    connections = _connections(where, experiment, profile, graph)
    problems = [f"{where}: {p}" for p in _unknown_metrics(experiment, profile, connections)]
    if problems:
        raise SpecError(problems)
    return Case(name, experiment, profile, graph, tuple(shapers), tuple(connections))


def _unknown_hosts(experiment: Experiment, graph: Graph) -> list[str]:
    known = ", ".join(graph.hosts)
    return [
        f'flows.{index}.{end}: no host "{host}"; the topology has {known}'
        for index, flow in enumerate(experiment.flows)
        for end, host in (("from", flow.from_), ("to", flow.to))
        if host not in graph.hosts
    ] + [
        f'flows.{index}.to: "{flow.to}" is where the flow comes from'
        for index, flow in enumerate(experiment.flows)
        if flow.to == flow.from_
    ]


def _unknown_metrics(
    experiment: Experiment, profile: Profile, connections: list[Connection]
) -> list[str]:
    channels = [name for name, direction in profile.directions.items() if direction.dtm]
    known = metric_names(profile.directions, [c.name for c in connections], channels)
    problems = []
    for index, expectation in enumerate(experiment.expect):
        if expectation.metric not in known:
            close = difflib.get_close_matches(expectation.metric, known, n=1)
            hint = f'; did you mean "{close[0]}"?' if close else ""
            problems.append(f'expect.{index}.metric: no metric "{expectation.metric}"{hint}')
    return problems


def _connections(
    where: str, experiment: Experiment, profile: Profile, graph: Graph
) -> list[Connection]:
    connections: list[Connection] = []
    problems = []
    for index, flow in enumerate(experiment.flows):
        direction = _direction(profile, graph, flow.from_, flow.to)
        ack_direction = _direction(profile, graph, flow.to, flow.from_)
        if direction is None or ack_direction is None:
            ends = (flow.from_, flow.to) if direction is None else (flow.to, flow.from_)
            problems.append(f"{where}: flows.{index}: {' to '.join(ends)} passes no queue")
            continue
        for number in range(1, flow.count + 1):
            name = flow.name if flow.count == 1 else f"{flow.name}-{number}"
            connections.append(Connection(flow, name, len(connections), direction, ack_direction))
    names = [c.name for c in connections]
    problems += [
        f'{where}: flows: "{name}" is used twice, by a flow and by one of several with count'
        for name in dict.fromkeys(n for n in names if names.count(n) > 1)
    ]
    if problems:
        raise SpecError(problems)
    return connections


def _direction(profile: Profile, graph: Graph, start: str, goal: str) -> str | None:
    """The direction of the slowest queue on the way from one host to another, the first of equals.

    A DTM channel counts with its rate at the start of traffic.
    """
    queued = {i.name: direction for direction, placed in graph.queues.items() for i in placed}
    passed = [queued[i.name] for i in _path(graph, start, goal) if i.name in queued]
    return min(passed, key=lambda name: profile.directions[name].start_mbit, default=None)


def _path(graph: Graph, start: str, goal: str) -> list[Interface]:
    """The outgoing interfaces on the shortest way from one host to another."""
    ways: dict[str, list[Interface]] = {start: []}
    ahead = deque([start])
    while ahead:
        node = ahead.popleft()
        for interface in graph.of(node):
            if interface.peer_node not in ways:
                ways[interface.peer_node] = [*ways[node], interface]
                ahead.append(interface.peer_node)
    return ways.get(goal, [])


def spec_hash(case: Case) -> str:
    """What identifies an experiment: a hash over all it says and refers to."""
    document = {
        "experiment": case.experiment.model_dump(by_alias=True),
        "profile": case.profile.model_dump(by_alias=True),
        "topology": (TOPOLOGIES / f"{case.experiment.topology.name}.py").read_text("utf-8"),
    }
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()
