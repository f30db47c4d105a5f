"""Loading an experiment with topology, profile and connections."""

import glob
import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from twoway.contract.expression import derived_problems
from twoway.contract.model import Name
from twoway.contract.network import START_NS, Connection, DatagramFlow, whole_ns
from twoway.contract.plan import PlannedFile
from twoway.contract.statements import Claim, Finding, Prediction
from twoway.description.connections import make_connections, make_datagram_flows
from twoway.description.experiment import Experiment, Flow, Named, Profile
from twoway.description.figures import figure_problems
from twoway.description.graph import Graph
from twoway.description.interventions import (
    Surroundings,
    changed_directions,
    changed_times,
    intervention_problems,
    rates_by_tc,
    route_problems,
)
from twoway.description.matrix import (
    AxisValues,
    changes,
    find_point,
    find_points,
    full_name,
    point_name,
    points,
    same_name,
)
from twoway.description.own_modules import OwnModule
from twoway.description.parsing import show_text
from twoway.description.placement import (
    gso_problems,
    own_qdisc_problems,
    placement_problems,
    setting_problems,
)
from twoway.description.predictions import claims_at, metric_problems, predictions_at, setup_of
from twoway.description.reading import (
    ExperimentSource,
    axis_problems,
    checked_profile,
    experiment_file,
    load_experiment,
)
from twoway.description.referred_files import find_topology, in_experiment, profile_source
from twoway.description.repetitions import at_matrix, repeated_points, split
from twoway.description.rules import profile_problems
from twoway.description.statements import said_at
from twoway.description.suite import find_row, rows_of_suite
from twoway.description.topology import load_topology
from twoway.errors import SpecError
from twoway.links.dtm import Channel
from twoway.links.interface import Interface
from twoway.links.mtu import Mtu
from twoway.links.queue_limit import QueueLimit
from twoway.manifest import SEED
from twoway.messages import suggest
from twoway.paths import experiment_files, shown_path

# Names with another meaning in the results folder.
_RESERVED_IDS = ("latest", "calibration", "papers", "score", "class")
# The only point of an experiment without a matrix.
WHOLE: AxisValues = {}
# Fields that name hosts.
_HOSTS = {"flows": ("from", "to"), "datagrams": ("from", "to"), "programs": ("host",)}
# A function that lists the metrics of a run, from the names of all its queues and connections.
MetricNames = Callable[..., list[str]]


@dataclass(frozen=True)
class Point:
    """An experiment, or one point of a sweep, with all files that it refers to, checked.

    Loading checks every field and file.

    Attributes:
        id: the experiment's id, with "@" and the point's name.
        values: the point's values by axis of the matrix.
        experiment: the experiment's fields at this point.
        predictions: this project's predictions of metrics at this point.
        claims: the paper's claims about them.
        findings: results of earlier runs.
        metrics: the names of all its metrics.
        profile: the link profile at this point.
        graph: the topology.
        topology_source: the content of its file.
        connections: the connections of all flows.
        datagrams: the UDP flows of the experiment.
        flows: each connection's flow, by the connection's name.
        own_modules: kernel modules that belong to the experiment.
        files: the files of each program, by their paths in its folder, by the program's name.
    """

    id: str
    values: AxisValues
    experiment: Experiment
    predictions: tuple[Prediction, ...]
    claims: tuple[Claim, ...]
    findings: tuple[Finding, ...]
    metrics: tuple[str, ...]
    profile: Profile
    graph: Graph
    topology_source: str
    connections: tuple[Connection, ...]
    datagrams: tuple[DatagramFlow, ...]
    flows: Mapping[str, Flow]
    own_modules: tuple[OwnModule, ...]
    files: Mapping[str, Mapping[str, PlannedFile]]

    @property
    def surroundings(self) -> Surroundings:
        """The parts of the experiment that interventions may name."""
        return _surroundings(
            self.experiment, self.connections, self.datagrams, self.graph, self.profile
        )

    @property
    def changed(self) -> "Point":
        """This point with the links and times of flows that its interventions give it."""
        return self._changed(by_tc=False)

    @property
    def planned(self) -> "Point":
        """The same with the rates with which queues begin that tc changes later."""
        return self._changed(by_tc=True)

    def _changed(self, *, by_tc: bool) -> "Point":
        asked = self.experiment.interventions
        directions = changed_directions(self.profile.directions, asked, by_tc=by_tc)
        return replace(
            self,
            profile=self.profile.model_copy(update={"directions": directions}),
            connections=tuple(
                c.model_copy(update=changed_times(c, asked)) for c in self.connections
            ),
            datagrams=tuple(d.model_copy(update=changed_times(d, asked)) for d in self.datagrams),
        )

    def mtu_of(self, interface: Interface) -> int | None:
        """Return the MTU of the link into which an interface sends, if it has its own."""
        for name, queues in self.graph.queues.items():
            mtu = self.profile.directions[name].elements.find(Mtu)
            if mtu and mtu.icmp and interface in queues:
                return mtu.bytes
        return None


def find_experiment(name: str) -> Path:
    """Find an experiment's file by path or id; an id is also that of a file in this folder.

    Raises: SpecError if there is no such file.
    """
    if name.endswith((".yml", ".yaml")):
        if not Path(name).is_file():
            raise SpecError([f"{name}: no such file"], "a path is relative to the current folder")
        return Path(name)
    files = {} if "/" in name else experiment_files(glob.escape(name))
    if name not in files and (own := Path(f"{name}.yml")).is_file() and own.name == str(own):
        return own
    if name not in files:
        raise SpecError(
            [f"{name}: no such experiment{suggest(name, experiment_files())}"],
            "`twoway list` shows all",
        )
    return files[name]


def load_point(name: str, metric_names: MetricNames) -> Point:
    """Read an experiment, or one point of a sweep, with all that it refers to.

    Args:
        name: an id or a file; for a sweep with "@" and the point's name; for a repetition with its
            seed last, as "id@seed=2" or "id@AXIS=VALUE,seed=2".
        metric_names: lists the names of the metrics.

    Raises: SpecError with every problem found.
    """
    experiment_name, _, named = name.partition("@")
    source = find_source(experiment_name)
    experiment = _loaded(source)
    if not experiment.matrix and not named:
        return make_point(source, experiment, metric_names)
    in_matrix, seed = split(experiment, named)
    point = find_point(source.where, experiment.matrix, in_matrix)
    if seed is not None:
        point = {**point, SEED: seed}
    return make_point(source, load_experiment(source, point), metric_names, point)


def load_points(
    source: ExperimentSource, metric_names: MetricNames, seeds: int | None = None
) -> list[Point]:
    """Read all points of an experiment.

    Args:
        source: the experiment.
        metric_names: lists the names of the metrics.
        seeds: number of repetitions of each point; by default as the experiment says.

    Raises: SpecError with every problem found.
    """
    return [
        make_point(source, load_experiment(source, at), metric_names, at)
        for at in _all_points(source, seeds)
    ]


def point_names(name: str, seeds: int | None = None) -> list[str]:
    """List the names of an experiment's points, for `load_point`.

    An experiment without a matrix has one point, or one for each seed.

    Args:
        name: an id or a file; with "@" and values of some axes, the points that have them.
        seeds: number of repetitions of each point; by default as the file says, but none of a named
            point.

    Raises: SpecError if there is no such experiment or point, or its file has problems.
    """
    experiment_name, _, asked = name.partition("@")
    source = find_source(experiment_name)
    if not asked:
        return [full_name(experiment_name, point) for point in _all_points(source, seeds)]
    where, experiment = source.where, _sound(source)
    in_matrix, seed = (asked, None) if seeds else split(experiment, asked)
    chosen = find_points(where, experiment.matrix, in_matrix)
    if seed is not None:
        chosen = [{**point, SEED: seed} for point in chosen]
    elif seeds or not same_name(point_name(chosen[0]), in_matrix):
        chosen = [*repeated_points(where, experiment, chosen, seeds)]
    return [full_name(experiment_name, point) for point in chosen]


def _all_points(source: ExperimentSource, seeds: int | None) -> list[AxisValues]:
    """List the points of an experiment, each with every seed."""
    experiment = _sound(source)
    return [*repeated_points(source.where, experiment, points(experiment.matrix), seeds)]


def _sound(source: ExperimentSource) -> Experiment:
    """Load an experiment; raise SpecError if it has problems, or axes that set no field."""
    experiment = _loaded(source)
    if experiment.matrix:
        _refuse_unknown_paths(source, experiment)
    return experiment


def _loaded(source: ExperimentSource) -> Experiment:
    """Load an experiment; add the problems of its profile and topology to its own."""
    try:
        return load_experiment(source)
    except SpecError as error:
        problems = [*error.problems, *_problems_referred_to(source)]
        raise SpecError(problems, error.hint) from error


def _refuse_unknown_paths(source: ExperimentSource, experiment: Experiment) -> None:
    """Raise SpecError if an axis sets a field that does not exist; once, not at each point."""
    values = changes(experiment.matrix, next(points(experiment.matrix)))
    named = values.get("profile")
    try:
        profile = profile_source(str(named) if named else experiment.profile, source.file)
    except SpecError as error:
        raise SpecError([f"{source.where}: profile: {error}"], error.hint) from error
    if problems := axis_problems(source, profile, values):
        raise SpecError(problems, "`twoway schema experiment` and `profile` describe all fields")


def _problems_referred_to(source: ExperimentSource) -> list[str]:
    """List problems of topology, hosts and profile in an experiment that has problems itself."""
    document, problems = source.document, list[str]()
    try:
        topology = TypeAdapter(Named).validate_python(document.get("topology"))
        graph = load_topology(find_topology(topology.name, source.file), topology.parameters)
        problems += _unknown_hosts(document, graph)
    except ValidationError:
        pass  # the error on its shape is reported already
    except SpecError as error:
        problems += [f"topology: {problem}" for problem in error.problems]
    problems = [f"{source.where}: {problem}" for problem in problems]
    given = document.get("profile")
    try:
        if not isinstance(given, Mapping):
            given = TypeAdapter(Name).validate_python(given)
        checked_profile(profile_source(given, source.file), {})
    except ValidationError:
        pass
    except SpecError as error:
        problems += in_experiment(source.where, error, given)
    return problems


def find_source(name: str) -> ExperimentSource:
    """Find an experiment: an id, a file, or a row of a suite, such as "quick/alone".

    Raises: SpecError if there is none, or if its file is no YAML.
    """
    try:
        source = find_row(name)
        if source is None and (rows := rows_of_suite(name)):
            hint = f"`twoway score --suite {name}` runs it; its rows are {', '.join(rows)}"
            raise SpecError([f"{name}: is a suite, not an experiment"], hint)
        source = source or experiment_file(find_experiment(name))
    except OSError as error:  # a name that no file can have
        raise SpecError([f"{name:.80}: {error.strerror}"]) from error
    if source.id in _RESERVED_IDS or not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", source.id):
        raise SpecError([f'{source.file}: "{source.id}" cannot be an experiment\'s id'])
    return source


def make_point(
    source: ExperimentSource,
    experiment: Experiment,
    metric_names: MetricNames,
    values: AxisValues = WHOLE,
) -> Point:
    """Combine an experiment with all it refers to; check everything.

    Args:
        source: the experiment; the files that it names are looked for beside its file.
        experiment: its fields at the point.
        metric_names: lists the names of the metrics.
        values: the point's values by axis of the matrix, with a seed if it is a repetition.

    Raises: SpecError with every problem found.
    """
    where = f"{source.where}: point {point_name(values)}" if values else source.where
    problems: list[str] = []
    hints: dict[str, None] = {}  # a set, in order of appearance
    topology_path = find_topology(experiment.topology.name, source.file)
    graph = profile = None
    try:
        graph = load_topology(topology_path, experiment.topology.parameters)
        document = experiment.model_dump(by_alias=True, include={*_HOSTS, "hosts", "routers"})
        problems += [f"{where}: {p}" for p in _unknown_hosts(document, graph)]
    except SpecError as error:
        problems += [f"{where}: topology: {problem}" for problem in error.problems]
        hints[error.hint] = None
    try:
        said_point = at_matrix(experiment, values)
        written = profile_source(experiment.profile, source.file)
        profile = checked_profile(written, changes(experiment.matrix, said_point))
    except SpecError as error:
        problems += in_experiment(where, error, experiment.profile)
        hints[error.hint] = None
    if problems or graph is None or profile is None:
        raise SpecError(problems, "; ".join(filter(None, hints)))
    problems = placement_problems(profile, graph) + setting_problems(profile, experiment)
    if problems:
        if isinstance(experiment.profile, str):
            raise SpecError([f"{shown_path(Path(written.where))}: {each}" for each in problems])
        raise SpecError([f"{where}: profile.{each}" for each in problems])
    made = make_connections(where, experiment, profile, graph)
    connections = [connection for connection, _ in made]
    datagrams = make_datagram_flows(where, experiment, graph)
    queues, directions = graph.placed_queues, profile.directions
    around = _surroundings(experiment, connections, datagrams, graph, profile)
    problems = own_qdisc_problems(profile, graph, experiment) + gso_problems(profile, experiment)
    problems += (
        *intervention_problems(experiment.interventions, around),
        *route_problems(experiment.routers, around),
    )
    if problems := problems or _changed_link_problems(experiment, profile, graph):
        raise SpecError([f"{where}: {each}" for each in problems])
    channels = [q.name for q in queues if directions[q.direction].elements.contains(Channel)]
    known = metric_names(
        queues=[q.name for q in queues],
        connections=[c.name for c in connections],
        channels=channels,
        datagrams=[d.name for d in datagrams],
        programs=[p.name for p in experiment.programs],
        senders=[p.name for p in experiment.programs if p.udp_port],
    )
    setup = setup_of(experiment, profile, graph, connections, datagrams)
    derived, axes = experiment.metrics, {*experiment.matrix, *values}
    wrong = derived_problems(derived, known, axes, whole=not values)
    problems = [f"{where}: {problem}" for problem in wrong]
    known += derived
    problems += [f"{where}: {p}" for p in metric_problems(experiment, said_point, known)]
    families = _metric_families(metric_names) | {*derived}
    drawn = figure_problems(experiment.figures, experiment.matrix, families)
    problems += [f"{where}: {problem}" for problem in drawn]
    if problems:
        raise SpecError(problems)
    return Point(
        id=full_name(source.id, values),
        values=values,
        experiment=experiment,
        predictions=tuple(predictions_at(where, experiment, said_point, setup)),
        claims=tuple(claims_at(where, source.id, experiment, said_point, setup)),
        findings=tuple(
            each.make_finding(metric, said_point, experiment.matrix)
            for _, each, metric in said_at(said_point, experiment.findings)
        ),
        metrics=tuple(known),
        profile=profile,
        graph=graph,
        topology_source=topology_path.read_text("utf-8"),
        connections=tuple(connections),
        datagrams=tuple(datagrams),
        flows={connection.name: flow for connection, flow in made},
        own_modules=source.own_modules(experiment),
        files=source.program_files(experiment),
    )


def _changed_link_problems(experiment: Experiment, profile: Profile, graph: Graph) -> list[str]:
    """List problems of links after interventions: a link that changes has rules of its own."""
    if not any(each.link for each in experiment.interventions):
        return []
    links = changed_directions(profile.directions, experiment.interventions)
    changed = profile.model_copy(update={"directions": links})
    problems = profile_problems(changed) + placement_problems(changed, graph)
    problems += setting_problems(changed, experiment)
    changes = rates_by_tc(profile.directions, experiment.interventions).values()
    by_tc = {each.direction: profile.directions[each.direction] for each in changes}
    if by_tc and profile.half_duplex:
        problems += ["half_duplex: tc cannot change its rate"]
    end_ns = START_NS + whole_ns(experiment.duration_s)
    problems += [
        f"directions.{name}.{each.FIELD}: each change would set the rate back"
        for name, link in by_tc.items()
        for each in link.elements
        if (isinstance(each, QueueLimit) and not link.manager)
        or (link.transmits_behind and each in link.behind_queue and [*each.changes(end_ns)])
    ]
    return [f"interventions: with their changes of links: {each}" for each in problems]


def _surroundings(
    experiment: Experiment,
    connections: Sequence[Connection],
    datagrams: Sequence[DatagramFlow],
    graph: Graph,
    profile: Profile,
) -> Surroundings:
    """Collect the parts of an experiment that interventions may name."""
    return Surroundings(
        experiment.duration_s,
        experiment.has_ecn,
        {connection.name: connection for connection in connections},
        {flow.name: flow for flow in datagrams},
        graph,
        profile.directions,
    )


def _metric_families(metric_names: MetricNames) -> set[str]:
    """Return the names of metrics that a figure may draw, without the object of each."""
    one = ("",)
    every = metric_names(queues=one, connections=one, channels=one, datagrams=one, programs=one)
    return {name.partition(".")[0] for name in every}


def _unknown_hosts(document: Mapping[str, Any], graph: Graph) -> list[str]:
    """List hosts in a document that the topology does not have, and flows from a host to itself."""
    known = ", ".join(graph.hosts)
    problems = [
        f'{where}: no host "{show_text(host)}"; the topology has {known}'
        for where, host in _hosts(document)
        if host not in graph.hosts
    ]
    own = document.get("routers")
    problems += [
        f'routers.{name}: no router "{show_text(name)}"; the topology has '
        f"{', '.join(graph.routers)}"
        for name in (own if isinstance(own, dict) else ())
        if name not in graph.routers
    ]
    for kind in ("flows", "datagrams"):
        problems += [
            f'{kind}.{n}.to: "{show_text(each["to"])}" is also where the flow starts'
            for n, each in _entries(document, kind)
            if isinstance(each.get("to"), str) and each["to"] == each.get("from")
        ]
    return problems


def _hosts(document: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """List the hosts that a document names, each with its field; skip unsound entries."""
    own = document.get("hosts")
    yield from ((f"hosts.{host}", host) for host in (own if isinstance(own, dict) else ()))
    for kind, ends in _HOSTS.items():
        for n, each in _entries(document, kind):
            yield from ((f"{kind}.{n}.{e}", each[e]) for e in ends if isinstance(each.get(e), str))


def _entries(document: Mapping[str, Any], field: str) -> list[tuple[int, dict[str, Any]]]:
    """List the entries of a document's field that are mappings, each with its place."""
    found = document.get(field)
    return [
        (n, each)
        for n, each in enumerate(found if isinstance(found, list) else ())
        if isinstance(each, dict)
    ]


def spec_document(point: Point) -> dict[str, Any]:
    """Describe an experiment at its point, with the statements on it."""
    said = {"predictions": point.predictions, "claims": point.claims, "findings": point.findings}
    unused = {"interventions"} if not point.experiment.interventions else set()
    document = point.experiment.model_dump(
        by_alias=True, mode="json", exclude={*said, "unclaimed", "theory", *unused}
    )
    return {
        **document,
        **{kind: [row.model_dump(mode="json") for row in rows] for kind, rows in said.items()},
    }


def spec_hash(point: Point) -> str:
    """Hash an experiment with its profile and topology."""
    document = {
        "experiment": spec_document(point),
        "profile": point.profile.model_dump(by_alias=True, mode="json"),
        "topology": point.topology_source,
    }
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()
