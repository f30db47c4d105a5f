"""Loading an experiment with topology, profile and connections."""

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from twoway.contract.network import Connection, DatagramFlow
from twoway.contract.plan import PlannedFile
from twoway.contract.statements import Claim, Finding, Prediction
from twoway.errors import SpecError
from twoway.paths import EXPERIMENTS, PROFILES, ROOT, TOPOLOGIES
from twoway.spec.connections import make_connections, make_datagram_flows
from twoway.spec.experiment import Experiment, Flow, Profile
from twoway.spec.matrix import Point, changes, find_point, full_name, points
from twoway.spec.own_modules import OwnModule
from twoway.spec.placement import placement_problems
from twoway.spec.predictions import claims_at, metric_problems, predictions_at, setup_of
from twoway.spec.reading import load_experiment, load_profile, own_modules, program_files
from twoway.spec.statements import said_at
from twoway.spec.topology import Graph, load_topology

# Names that the results folder uses for other things.
_RESERVED_IDS = ("latest", "calibration", "papers")
# The only point of an experiment without a matrix.
WHOLE: Point = {}
# Lists the metrics of a run, from the names of all that metrics are measured on.
MetricNames = Callable[..., list[str]]


@dataclass(frozen=True)
class Case:
    """An experiment, or a point of a sweep, with all it refers to.

    Everything is checked.

    Attributes:
        id: the experiment's id, with "@" and the point's name.
        point: the point's values by axis of the matrix.
        experiment: the experiment's fields at this point.
        predictions: what this project's theory says of the metrics at this point.
        claims: what the paper says of them.
        findings: what was seen before.
        metrics: the names of all its metrics.
        profile: the link profile at this point.
        graph: the topology.
        connections: the connections of all flows.
        datagrams: the UDP flows.
        flows: each connection's flow, by the connection's name.
        own_modules: kernel modules that it brings along.
        files: the files of each program, by their paths in its folder, by the program's name.
    """

    id: str
    point: Point
    experiment: Experiment
    predictions: tuple[Prediction, ...]
    claims: tuple[Claim, ...]
    findings: tuple[Finding, ...]
    metrics: tuple[str, ...]
    profile: Profile
    graph: Graph
    connections: tuple[Connection, ...]
    datagrams: tuple[DatagramFlow, ...]
    flows: Mapping[str, Flow]
    own_modules: tuple[OwnModule, ...]
    files: Mapping[str, Mapping[str, PlannedFile]]


def find_experiment(name: str) -> Path:
    """Find an experiment's file by id or path.

    Raises: SpecError if there is no such file.
    """
    path = Path(name) if name.endswith((".yml", ".yaml")) else EXPERIMENTS / f"{name}.yml"
    if not path.is_file():
        raise SpecError([f"{name}: no such experiment"], "`twoway list` shows those there are")
    return path


def find_profile(name: str) -> Path:
    """Find a link profile's file by name.

    Raises: SpecError if there is no such profile.
    """
    path = PROFILES / f"{name}.yml"
    if not path.is_file():
        known = ", ".join(sorted(p.stem for p in PROFILES.glob("*.yml")))
        raise SpecError([f"{path.relative_to(ROOT)}: no such profile"], f"there are: {known}")
    return path


def load_case(name: str, metric_names: MetricNames) -> Case:
    """Read an experiment, or one point of a sweep, with all that it refers to.

    Args:
        name: an id or a file; for a sweep with "@" and the point's name.
        metric_names: lists the metrics that there are.

    Raises: SpecError with every problem found.
    """
    experiment_name, _, point_name = name.partition("@")
    where, path = _named(experiment_name)
    experiment = load_experiment(path)
    if not experiment.matrix and not point_name:
        return make_case(where, path.stem, experiment, metric_names, path=path)
    point = find_point(where, experiment.matrix, point_name)
    where, experiment = f"{where}: point {point_name}", load_experiment(path, point)
    return make_case(where, path.stem, experiment, metric_names, point, path=path)


def case_names(name: str) -> list[str]:
    """List the names of an experiment's points, for `load_case`.

    An experiment that is no sweep has one.

    Raises: SpecError if there is no such experiment, or its file has problems.
    """
    if "@" in name:
        return [name]
    _, path = _named(name)
    return [full_name(name, point) for point in points(load_experiment(path).matrix)]


def _named(name: str) -> tuple[str, Path]:
    """Find an experiment's file; return its path for errors, and its path."""
    path = find_experiment(name)
    if path.stem in _RESERVED_IDS or not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", path.stem):
        raise SpecError([f'{path}: "{path.stem}" cannot be an experiment\'s id'])
    return str(path.relative_to(ROOT) if path.is_relative_to(ROOT) else path), path


def make_case(
    where: str,
    name: str,
    experiment: Experiment,
    metric_names: MetricNames,
    point: Point = WHOLE,
    *,
    path: Path | None = None,
) -> Case:
    """Combine an experiment with all it refers to; check everything.

    Args:
        where: the experiment's file or origin, for errors.
        name: the experiment's id.
        experiment: the experiment's fields at the point.
        metric_names: lists the metrics that there are.
        point: the point of the experiment's matrix.
        path: the experiment's file; None if it has none, and so brings nothing along.

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
        values = changes(experiment.matrix, point)
        profile = load_profile(find_profile(experiment.profile), values)
    except SpecError as error:
        problems += [f"{where}: profile: {problem}" for problem in error.problems]
    if problems or graph is None or profile is None:
        raise SpecError(problems)
    profile_name = f"tc-profiles/{experiment.profile}.yml"
    if problems := placement_problems(profile, graph):
        raise SpecError([f"{profile_name}: {problem}" for problem in problems])
    made = make_connections(where, experiment, profile, graph)
    connections = [connection for connection, _ in made]
    datagrams = make_datagram_flows(where, experiment, graph)
    queues = graph.placed_queues
    channels = [queue.name for queue in queues if profile.directions[queue.direction].dtm]
    known = metric_names(
        queues=[q.name for q in queues],
        connections=[c.name for c in connections],
        channels=channels,
        datagrams=[d.name for d in datagrams],
        programs=[p.name for p in experiment.programs],
    )
    setup = setup_of(experiment, profile, graph, connections, datagrams)
    problems = [f"{where}: {p}" for p in metric_problems(experiment, point, known)]
    if problems:
        raise SpecError(problems)
    return Case(
        id=full_name(name, point),
        point=point,
        experiment=experiment,
        predictions=tuple(predictions_at(where, experiment, point, setup)),
        claims=tuple(claims_at(where, name, experiment, point, setup)),
        findings=tuple(
            each.of(metric, point) for _, each, metric in said_at(point, experiment.findings)
        ),
        metrics=tuple(known),
        profile=profile,
        graph=graph,
        connections=tuple(connections),
        datagrams=tuple(datagrams),
        flows={connection.name: flow for connection, flow in made},
        own_modules=own_modules(path, experiment) if path else (),
        files=program_files(path, experiment) if path else {},
    )


def _unknown_hosts(experiment: Experiment, graph: Graph) -> list[str]:
    ends: list[tuple[str, str]] = []
    problems = []
    between = [(f"flows.{n}", flow.from_, flow.to) for n, flow in enumerate(experiment.flows)]
    between += [(f"datagrams.{n}", u.from_, u.to) for n, u in enumerate(experiment.datagrams)]
    for where, sender, receiver in between:
        ends += [(f"{where}.from", sender), (f"{where}.to", receiver)]
        if sender == receiver:
            problems.append(f'{where}.to: "{receiver}" is where the flow comes from')
    ends += [(f"programs.{n}.host", program.host) for n, program in enumerate(experiment.programs)]
    known = ", ".join(graph.hosts)
    unknown = [
        f'{where}: no host "{host}"; the topology has {known}'
        for where, host in ends
        if host not in graph.hosts
    ]
    return unknown + problems


def spec_document(case: Case) -> dict[str, Any]:
    """Describe an experiment at its point, with what is said of it there."""
    said = {"predictions": case.predictions, "claims": case.claims, "findings": case.findings}
    document = case.experiment.model_dump(
        by_alias=True, mode="json", exclude={*said, "unclaimed", "theory"}
    )
    return {
        **document,
        **{kind: [row.model_dump(mode="json") for row in rows] for kind, rows in said.items()},
    }


def spec_hash(case: Case) -> str:
    """Hash an experiment with its profile and topology."""
    document = {
        "experiment": spec_document(case),
        "profile": case.profile.model_dump(by_alias=True, mode="json"),
        "topology": (TOPOLOGIES / f"{case.experiment.topology.name}.py").read_text("utf-8"),
    }
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()
