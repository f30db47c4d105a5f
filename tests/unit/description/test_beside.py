"""Profiles and topologies beside an experiment's file, and all problems of one at once."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from support.running import SMALL, write_experiment

from twoway.contract.plan import Topology
from twoway.description.point import point_names
from twoway.errors import SpecError
from twoway.paths import PROFILES, TOPOLOGIES
from twoway.plan.plan import build_plan
from twoway.runs.points import load_point


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
        "duration_s: must be a valid number, unable to parse string as a number, got 'long'",
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
