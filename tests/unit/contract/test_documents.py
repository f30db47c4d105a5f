"""The documents of a run's folder: their content, refusals, and those of untrusted runs."""

import json
from pathlib import Path
from typing import Any

import pytest
from support.running import ROOT
from support.synthetic_run import edit_json, manifest, metrics_of, write_run
from support.today import DAY, DAYS
from support.warm_command import twoway

from twoway.commands.options import SCHEMAS, all_ids
from twoway.contract.guest_files import read_netstat
from twoway.contract.metrics import METRICS, Metrics
from twoway.contract.model import read_json
from twoway.contract.plan import PLAN, Observe, Plan, read_plan
from twoway.contract.writing import write_json
from twoway.description.point import point_names
from twoway.errors import RunError
from twoway.manifest import EXPERIMENT, MANIFEST, Described, Manifest, read_manifest
from twoway.measure.analysis import Analysis
from twoway.measure.document import compute
from twoway.plan.plan import build_plan
from twoway.runs.manifest import describe
from twoway.runs.points import load_point

# Every kind of step: modules, DTM channels.
EXAMPLES = ("kalampoukas-5.2", "dtm-fig2")


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_plan_comes_back_from_its_file(tmp_path: Path, name: str) -> None:
    """A plan reads back as it was written; its file also has each step's derived command."""
    plan = build_plan(load_point(name))
    plan.write(tmp_path / PLAN)
    assert read_plan(tmp_path) == plan
    assert json.loads((tmp_path / PLAN).read_text())["sources"][0]["run"] == [*plan.sources[0].run]


@pytest.mark.slow
def test_a_description_comes_back_from_its_file(tmp_path: Path) -> None:
    """The description of an experiment in a run's folder reads back unchanged, in any sweep."""
    changed = []
    for name in all_ids()[DAY::DAYS]:
        described = describe(load_point(point_names(name)[-1]))
        described.write(tmp_path / EXPERIMENT)
        read = Described.read(tmp_path / EXPERIMENT)
        if read.model_dump_json() != described.model_dump_json():
            changed.append(name)
    assert changed == []


def test_every_step_has_a_kind() -> None:
    """Each kind of step is in a plan, and its steps and programs describe their purpose."""
    plan = json.loads(build_plan(load_point("dtm-bus@owned=5")).model_dump_json())
    parts = {name: part for name, part in plan.items() if isinstance(part, list)}
    kinds = {name: {step["kind"] for step in part} for name, part in parts.items()}
    assert kinds["setup"] == {
        *("make_network", "load_module", "set_sysctls", "set_offloads", "command", "check")
    }
    assert kinds["teardown"] == {"save", "copy"}
    assert kinds["sources"] == {"observe", "program"}
    assert kinds["captures"] == {"capture"}


def test_an_observer_of_fewer_nodes() -> None:
    """An observer reduced to two nodes samples only their sockets and queues."""
    observer = build_plan(load_point("kalampoukas-5.2")).sources[0]
    assert isinstance(observer, Observe)
    words = observer.select_nodes(("h2", "r1")).run
    assert words[-4:] == ("--sockets", "h2", "--queue", "r1/r1-eth1")


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"schema": 1}, r"plan\.json: not of schema 6 but 1: another version of twoway wrote it$"),
        ({"memory": 1}, r"plan\.json: memory: Extra inputs are not permitted$"),
        ({"memory_mib": None}, r"plan\.json: memory_mib: Input should be a valid integer$"),
        ({"setup": [{"kind": "insmod"}]}, r"plan\.json: setup\.0: .*'load_module'"),
    ],
)
def test_unsound_plan(tmp_path: Path, change: dict[str, Any], complaint: str) -> None:
    """A plan of another schema, or one that violates its own, is refused with the reason."""
    Plan(memory_mib=1).write(tmp_path / PLAN)
    edit_json(tmp_path / PLAN, lambda plan: plan.update(change))
    with pytest.raises(RunError, match=complaint):
        read_plan(tmp_path)


def test_no_plan(tmp_path: Path) -> None:
    """A plan that is missing is an error that names plan.json."""
    with pytest.raises(RunError, match=r"plan\.json"):
        read_plan(tmp_path)


def test_metrics_come_back_from_their_file(tmp_path: Path) -> None:
    """metrics.json has the computed metrics, and no other file is left."""
    document = compute(Analysis(write_run(tmp_path / "run")))
    aside = tmp_path / "aside"
    aside.mkdir()
    document.write(aside / METRICS)
    assert [path.name for path in aside.iterdir()] == [METRICS]
    assert Metrics.read(aside / METRICS) == document


def test_metrics_are_numbers(tmp_path: Path) -> None:
    """A number that JSON cannot express is refused."""
    document = json.loads((write_run(tmp_path) / MANIFEST).read_text())
    metrics = {"goodput.first": {"value": float("nan"), "unit": "Mbit/s"}}
    with pytest.raises(ValueError, match="finite number"):
        metrics_of(document, metrics)


def test_what_an_experiment_says_now(tmp_path: Path) -> None:
    """experiment.json replaces what manifest.json says of the experiment, and nothing else."""
    folder = write_run(tmp_path)
    before = read_manifest(folder)
    assert before == Manifest.read(folder / MANIFEST)
    anew = describe(load_point("dtm-fig2"))
    assert not before.describes(anew)
    anew.write(folder / EXPERIMENT)
    now = read_manifest(folder)
    assert now.describes(anew)
    assert Described.read(folder / EXPERIMENT) == anew
    assert now.connections == before.connections


def test_an_experiment_is_quoted_whole() -> None:
    """A manifest has each field of the experiment's file, also those that no analysis reads."""
    point = load_point("dtm-fig2")
    said = describe(point).model_dump(mode="json")
    document = point.experiment.model_dump(by_alias=True, mode="json")
    statements = {"predictions", "claims", "findings"}
    found = said["experiment"]
    left_out = statements | {"unclaimed", "theory", "interventions"}  # it has no interventions
    # Statements have this point's values; `unclaimed` and `theory` become statements on loading.
    assert {name: value for name, value in found.items() if name not in statements} == {
        "id": point.id,
        **{name: value for name, value in document.items() if name not in left_out},
    }
    assert [len(found[name]) for name in sorted(statements)] == [
        len(point.claims),
        len(point.findings),
        len(point.predictions),
    ]
    assert said["profile"] == point.profile.model_dump(by_alias=True, mode="json")


@pytest.mark.parametrize("name", SCHEMAS)
def test_published_schemas(name: str) -> None:
    """Each format has a schema that describes every field, and a page of the site made from it."""
    schema = json.loads(twoway("schema", name).stdout)
    models = {name: schema, **schema.get("$defs", {})}
    lacking = [
        f"{model}.{key}"
        for model, definition in models.items()
        for key, field in definition.get("properties", {}).items()
        if not ("description" in field or "const" in field or "$ref" in json.dumps(field))
    ]
    assert lacking == []
    assert f": reference/{name}.md\n" in (ROOT / "mkdocs.yml").read_text()


# Documents of untrusted runs: names, numbers and nesting.

NAMES = ["../../elsewhere", "/etc/passwd", "..", ".hidden", "", "a\x1b[2J", "a\nb", "x" * 256]


def _places(document: dict[str, Any], name: str) -> dict[str, tuple[Any, Any, Any]]:
    """List the fields of a manifest that name files, each as mapping, key and value."""
    connection, queue = document["connections"][0], document["queues"][0]
    return {
        "experiment.id": (document["experiment"], "id", name),
        "run": (document, "run", name),
        "nodes.hosts.0": (document["nodes"], "hosts", [name]),
        "interfaces.0.name": (document["interfaces"][0], "name", name),
        "interfaces.0.node": (document["interfaces"][0], "node", name),
        "queues.0.interface": (queue, "interface", name),
        "queues.0.direction": (queue, "direction", name),
        "queues.0.reallocations": (queue, "reallocations", name),
        "connections.0.name": (connection, "name", name),
        "connections.0.source_interface": (connection, "source_interface", name),
        "captures": (document, "captures", {name: "in"}),
        "files.0": (document, "files", [name]),
        "digests": (document, "digests", {name: "0"}),
    }


@pytest.mark.parametrize("place", _places(manifest(), ""))
def test_names_of_files(tmp_path: Path, place: str) -> None:
    """A manifest with a path out of the run's folder is refused, with the field."""
    for name in NAMES:
        document = manifest()
        where, key, value = _places(document, name)[place]
        where[key] = value
        write_json(tmp_path / "manifest.json", document)
        with pytest.raises(ValueError, match=rf"(?s)manifest.json: {place}.*should match pattern"):
            Manifest.read(tmp_path / "manifest.json")


@pytest.mark.parametrize(
    ("content", "phrase"),
    [
        ("[" * 300_000, "nested too deep"),
        ("1" * 5000, "a number that does not fit in 64 bits: 11111111111111111111$"),
        (str(2**64), "a number that does not fit in 64 bits"),
        ("1e300", "a number that does not fit in 64 bits: 1e300"),
        ("{", "Expecting property name"),
        ('{"a": {"b": 1, "c": 2, "b": 3}}', "a key twice: b$"),
    ],
)
def test_what_python_cannot_take(content: str, phrase: str) -> None:
    """JSON that is nested too deep, or has too large a number or a key twice, is refused."""
    with pytest.raises(ValueError, match=phrase):
        read_json(content, unique_keys=True)
    assert read_json('{"throttled": 1, "throttled": 2}') == {"throttled": 2}
    assert read_json(f"[{2**64 - 1}, {-(2**63)}, 1e15]") == [2**64 - 1, -(2**63), 1e15]


@pytest.mark.parametrize(
    "content",
    [
        *(b"", b"\xff", b"TcpExt: a\n", b"TcpExt: a b\nTcpExt: 1\n", b"\n\n", b" " * (1 << 17)),
        *(b"TcpExt: a\nTcpExt: %b\n" % each for each in (b"x", b"-1", b"1" * 4000, b"1" * 5000)),
    ],
)
def test_counters_of_another_form(tmp_path: Path, content: bytes) -> None:
    """Counters of TCP that are no numbers of 64 bits, or without names, are refused."""
    (tmp_path / "netstat").write_bytes(content)
    with pytest.raises(ValueError):  # noqa: PT011 - in Python's words
        read_netstat(tmp_path, "netstat")
    (tmp_path / "netstat").write_bytes(b"TcpExt: a b\nTcpExt: 1 20\nIpExt: a\nIpExt: x\n")
    assert read_netstat(tmp_path, "netstat") == {"a": 1, "b": 20}
