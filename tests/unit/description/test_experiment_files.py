"""Files of experiments: folders, search, schemas, and profiles and topologies beside them."""

import json
from os.path import relpath
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
import yaml
from support.running import CLAIMED, ROOT, SMALL, problems_of, write_experiment
from support.warm_command import twoway

from twoway import paths
from twoway.commands.options import PUBLISHED, all_ids
from twoway.contract.plan import Topology
from twoway.description.point import find_experiment, point_names
from twoway.description.reading import experiment_file, load_experiment, read_document
from twoway.description.suite import suite_names
from twoway.errors import SpecError, UsageError
from twoway.paths import (
    EXPERIMENTS,
    PAPERS,
    PROFILES,
    SCHEMAS,
    SUITES,
    TOPOLOGIES,
    experiment_files,
)
from twoway.plan.plan import build_plan
from twoway.runs.points import load_point

# The folders of experiments, and the search for their files.

FILES = experiment_files()
FOLDERS = sorted({path.parent for path in FILES.values()} - {EXPERIMENTS})


def test_folders_are_papers_or_three_more() -> None:
    """The folders are one per paper, and `beyond`, `classes` and `lab`."""
    papers = {path.stem for path in PAPERS.iterdir()}
    assert {path.name for path in FOLDERS} == papers | {"beyond", "classes", "lab"}


def test_the_folder_of_an_experiment_is_its_paper() -> None:
    """An experiment of a paper is in that paper's folder, others in `beyond` or `classes`."""
    sources = {name: load_experiment(experiment_file(FILES[name])).source for name in all_ids()}
    elsewhere = [
        name
        for name, source in sources.items()
        if FILES[name].parent.name not in ([source.paper] if source else ["beyond", "classes"])
    ]
    assert elsewhere == []


def test_an_id_is_found_in_any_folder() -> None:
    """An id finds its file in any folder of the experiments."""
    assert find_experiment("zhang-fig8") == EXPERIMENTS / "zhang-1991/zhang-fig8.yml"
    assert find_experiment("two-kernels") == EXPERIMENTS / "lab/two-kernels.yml"


def test_the_id_that_commands_print_names_a_file_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The id of a file of one's own finds the file in the current folder, and no other."""
    monkeypatch.chdir(tmp_path)
    write_experiment(tmp_path, SMALL).rename("mine.yml")
    assert find_experiment("mine") == Path("mine.yml")
    assert point_names("mine", 2) == ["mine@seed=1", "mine@seed=2"]
    (tmp_path / "zhang-fig8.yml").touch()
    assert find_experiment("zhang-fig8") == EXPERIMENTS / "zhang-1991/zhang-fig8.yml"


@pytest.mark.parametrize(
    "name", ["*", "kalampoukas-5.[2]", "**", "..", "", "/x", "ge-2011/fast-ex1"]
)
def test_a_pattern_or_a_path_is_not_an_id(name: str) -> None:
    """An id is not a pattern of files, nor a path without the file's suffix."""
    with pytest.raises(SpecError, match="no such experiment"):
        find_experiment(name)


def test_two_files_with_one_id_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two files of one name in two folders are an error that names both."""
    monkeypatch.setattr(paths, "EXPERIMENTS", tmp_path)
    for folder in ("one", "other"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "same.yml").touch()
    with pytest.raises(UsageError) as caught:
        find_experiment("some")
    assert str(caught.value) == (
        f'{tmp_path}/other/same.yml: the id "same" is also the id of {tmp_path}/one/same.yml'
    )
    assert caught.value.hint == (
        "an experiment's id is its file's name without the folder: rename one"
    )


def test_list_has_a_heading_for_each_folder() -> None:
    """`twoway list` prints each folder and each suite, followed by its experiments or rows."""
    lines = twoway("list").stdout.splitlines()
    headings = [line for line in lines if not line.startswith(" ")]
    suites = [f"suites/{name}/" for name in suite_names()]
    assert headings == [*(f"{folder.name}/" for folder in FOLDERS), *suites]
    assert lines[lines.index("suites/quick/") + 1].split()[0] == "quick/alone"
    place = lines.index("kalampoukas-1998/")
    assert [line.split()[0] for line in lines[place : place + 2]] == [
        "kalampoukas-1998/",
        "kalampoukas-3.2",
    ]


# Profiles and topologies beside an experiment's file, and all problems of one at once.


def _problems(folder: Path, **changes: Any) -> list[str]:
    path = write_experiment(folder, {**SMALL, **changes})
    with pytest.raises(SpecError) as caught:
        point_names(str(path))
    return [problem.removeprefix(f"{path}: ") for problem in caught.value.problems]


def test_a_profile_beside_the_experiment(tmp_path: Path) -> None:
    """A profile beside the experiment's file is found, and precedes one of the checkout."""
    document = yaml.safe_load((PROFILES / "atm-131mbit.yml").read_text())
    document["directions"]["forward"]["queue_packets"] = 7
    for name in ("mine", "atm-131mbit"):
        (tmp_path / f"{name}.yml").write_text(yaml.safe_dump(document))
        path = write_experiment(tmp_path, {**SMALL, "profile": name})
        assert load_point(str(path)).profile.directions["forward"].queue_packets == 7


def test_a_profile_is_not_the_experiments_own_file(tmp_path: Path) -> None:
    """An experiment's file may have the name of its profile in the checkout."""
    path = write_experiment(tmp_path, SMALL, name="atm-131mbit")
    assert load_point(str(path)).profile.title


def test_a_topology_beside_the_experiment(tmp_path: Path) -> None:
    """A plan for Mininet's shell has the topology's program; a plan for a run has none of it."""
    program = (TOPOLOGIES / "two_node.py").read_text().replace('"two_node"', '"mine"')
    (tmp_path / "mine.py").write_text(program)
    point = load_point(str(write_experiment(tmp_path, {**SMALL, "topology": {"name": "mine"}})))
    assert build_plan(point, mode="shell").topology == Topology(name="mine", source=program)
    assert build_plan(point).topology is None
    assert program not in build_plan(point).model_dump_json()


def test_references_are_told_with_the_shape(tmp_path: Path) -> None:
    """A field of the wrong type hides neither a wrong host nor a missing profile."""
    flow = {"name": "f", "from": "h1", "to": "h9", "congestion": "reno"}
    found = _problems(tmp_path, duration_s="long", flows=[flow], profile="none")
    assert found == [
        "duration_s: must be a valid number, got 'long'",
        'flows.0.to: no host "h9"; the topology has h1, h2',
        "profile: tc-profiles/none.yml: no such profile",
    ]


def test_contradictions_hide_no_references(tmp_path: Path) -> None:
    """A violated rule between fields does not hide a missing topology."""
    found = _problems(tmp_path, warm_up_s=9, topology={"name": "none"})
    assert found[0].startswith("warm_up_s: must be below duration_s")
    assert found[1] == "topology: topologies/none.py: no such topology"


def test_a_link_inside_an_experiment(tmp_path: Path) -> None:
    """A link inside an experiment is refused with the field and the command that writes one."""
    (found,) = _problems(tmp_path, link={"rate_mbit": 8})
    assert found == (
        "link: unknown field; a link is a file that `profile` names: `twoway new` writes one"
    )


def test_parameters_at_the_wrong_place(tmp_path: Path) -> None:
    """A topology's own field without `parameters` gives a hint at the right place."""
    (found,) = _problems(tmp_path, topology={"name": "two_node", "hops": 3})
    assert found == (
        "topology.hops: unknown field; a topology's own fields go under parameters: {hops: 3}"
    )


# The schemas for editors equal the code's; every file names its schema and meets it.

NAMED = {
    "experiment": [*experiment_files().values()],
    "profile": sorted(PROFILES.glob("*.yml")),
    "suite": sorted(SUITES.glob("*.yml")),
}
_LINE = "# yaml-language-server: $schema="


def test_an_experiment_has_the_set_up_of_its_base(tmp_path: Path) -> None:
    """A file has its base's fields with its own changes, but not its points and statements."""
    matrix = {"window": {"set": ["flows.left.window_packets"], "to": [4, 8]}}
    base = {**SMALL, "observe": {"tcp_info_ms": 50}, "matrix": matrix, "claims": [CLAIMED]}
    write_experiment(tmp_path, base)
    changed = {
        "schema": 1,
        "title": "x",
        "base": "small",
        "stack": {"sack": False},
        "observe": None,
    }
    variant = str(write_experiment(tmp_path, changed, "variant"))
    point = load_point(variant)
    stack = SMALL["stack"] | {"sack": False}
    whole = {**SMALL, "title": "x", "summary": "", "stack": stack}
    same = load_point(str(write_experiment(tmp_path, whole, "whole")))
    assert (point.experiment, point.claims) == (same.experiment, ())
    write_experiment(tmp_path, {**base, "duration_s": 2})
    assert load_point(variant).experiment.duration_s == 2


def test_a_base_is_one_experiment_beside_the_file(tmp_path: Path) -> None:
    """A base that is no experiment beside the file, or has a base itself, is refused."""
    (tmp_path / "below").mkdir()
    write_experiment(tmp_path, SMALL)
    write_experiment(tmp_path / "below", {**SMALL, "base": "other"})
    write_experiment(tmp_path / "below", SMALL, "other")
    problems = {
        "../small": "base: no experiment '../small' beside it",
        5: "base: no experiment 5 beside it",
        None: "base: no experiment None beside it",
        "variant": "base: is this file",
        "smal": "base: no experiment 'smal' beside it; did you mean \"small\"?",
        "small": "base: small has a base itself: take that one",
    }
    for given, problem in problems.items():
        path = write_experiment(tmp_path / "below", {**SMALL, "base": given}, "variant")
        assert problems_of(str(path)) == [problem], given


@pytest.mark.parametrize("kind", PUBLISHED)
def test_the_schema_is_that_of_the_code(kind: str) -> None:
    """The published schema is the output of `twoway schema`; `make schemas` writes it."""
    assert (SCHEMAS / f"{kind}.json").read_text("utf-8") == twoway("schema", kind).stdout


def test_a_field_is_a_line() -> None:
    """A published schema has a line for each field, and is the JSON of the model's schema."""
    text = twoway("schema", "profile").stdout
    schema = json.loads(text)
    parts = [schema, *schema["$defs"].values()]
    fields = [name for part in parts for name in part.get("properties", {})]
    lines = [line.strip() for line in text.splitlines()]
    assert len(fields) > 50
    for name in {*fields}:
        found = [line for line in lines if line.startswith(f'"{name}": {{"')]
        assert len(found) >= fields.count(name), name
        assert all(isinstance(json.loads(f"{{{line.rstrip(',')}}}")[name], dict) for line in found)


@pytest.mark.parametrize("kind", PUBLISHED)
def test_every_file_names_its_schema_and_keeps_it(kind: str) -> None:
    """The first line of each file leads to the schema of its kind, which the file meets."""
    schema = SCHEMAS / f"{kind}.json"
    validator = jsonschema.Draft202012Validator(json.loads(schema.read_text("utf-8")))
    for path in NAMED[kind]:
        text = path.read_text("utf-8")
        assert text.partition("\n")[0] == f"{_LINE}{relpath(schema, path.parent)}", path
        problems = [error.message for error in validator.iter_errors(read_document(path))]
        assert problems == [], path.relative_to(ROOT)


def test_a_wrong_field_is_seen() -> None:
    """The schema of experiments refuses an unknown field, and text where a number belongs."""
    validator = jsonschema.Draft202012Validator(json.loads(twoway("schema", "experiment").stdout))
    fields = read_document(NAMED["experiment"][0])
    wrong = fields | {"durations": 1, "duration_s": "long"}
    messages = sorted(error.message for error in validator.iter_errors(wrong))
    assert messages == [
        "'long' is not of type 'number'",
        "Additional properties are not allowed ('durations' was unexpected)",
    ]


def test_new_files_name_their_schemas(tmp_path: Path) -> None:
    """Both files of `twoway new` name a schema that exists, from any folder."""
    assert twoway("new", "mine.yml", cwd=tmp_path).returncode == 0
    for name, kind in (("mine.yml", "experiment"), ("mine-link.yml", "profile")):
        line = (tmp_path / name).read_text("utf-8").partition("\n")[0]
        assert line == f"{_LINE}{(SCHEMAS / kind).as_uri()}.json"
