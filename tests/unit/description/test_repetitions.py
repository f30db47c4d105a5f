"""Repetitions: what a seed changes, and what stays."""

from pathlib import Path
from typing import Any

import pytest
from support.running import SMALL, problems_of, write_experiment

from twoway.contract.network import START_NS
from twoway.description.point import point_names
from twoway.errors import SpecError
from twoway.plan.plan import build_plan
from twoway.runs.points import load_point

TWO: dict[str, Any] = SMALL | {
    "flows": [
        {"name": "left", "from": "h1", "to": "h2", "congestion": "reno", "count": 2},
        {"name": "right", "from": "h2", "to": "h1", "congestion": "reno"}
        | {"transfers": {"per_s": 20, "mean_bytes": 10000}},
    ],
    "datagrams": [
        {"name": "call", "from": "h1", "to": "h2", "rate_mbit": 1, "arrivals": "poisson"}
    ],
    "matrix": {"ecn": {"set": ["stack.ecn"], "to": [False, True]}},
}


def starts_s(point: Any) -> dict[str, float]:
    """Return the start of each connection and UDP flow without random arrivals."""
    lasting = [each for each in point.connections if each.name.startswith("left")]
    found = {each.name: each.start_ns for each in lasting}
    found |= {each.name: each.start_ns for each in point.datagrams}
    return {name: (start_ns - START_NS) / 1e9 for name, start_ns in found.items()}


def test_names_have_the_seed_last(tmp_path: Path) -> None:
    """A point's name ends with its seed if the file or the command asks for seeds."""
    file = str(write_experiment(tmp_path, TWO))
    assert point_names(file) == [f"{file}@ecn=off", f"{file}@ecn=on"]
    wanted = [f"{file}@ecn={ecn},seed={seed}" for ecn in ("off", "on") for seed in (1, 2)]
    assert point_names(file, 2) == wanted
    assert point_names(f"{file}@ecn=on", 2) == wanted[2:]
    assert point_names(str(write_experiment(tmp_path, TWO | {"seeds": 2}))) == wanted
    one = str(write_experiment(tmp_path, SMALL, "one"))
    assert point_names(one, 1) == [f"{one}@seed=1"]
    assert load_point(f"{one}@seed=1").id == "one@seed=1"


def test_each_seed_draws_anew(tmp_path: Path) -> None:
    """Each seed gives other starts, ports, transfers, UDP times and kernel random numbers."""
    file = str(write_experiment(tmp_path, TWO))
    plain = load_point(f"{file}@ecn=on")
    found = [load_point(f"{file}@ecn=on,seed={seed}") for seed in (1, 2, 3)]
    assert [point.experiment.seed for point in found] == [1, 2, 3]
    assert set(starts_s(plain).values()) == {0}
    later = [each for point in map(starts_s, found) for each in point.values()]
    assert len(set(later)) == 9
    assert 0 < min(later) <= max(later) < 0.1
    for ports in (
        [point.connections[0].source_port for point in (plain, *found)],
        [point.connections[0].port for point in (plain, *found)],
        [point.datagrams[0].source_port for point in (plain, *found)],
        [udp_seed(point) for point in found],
        [tuple(c.start_ns for c in point.connections[2:]) for point in found],
    ):
        assert len(set(ports)) == len(ports)
    assert max(point.connections[0].port for point in found) < plain.connections[0].port + 10_000
    assert load_point(f"{file}@ecn=on,seed=2").connections == found[1].connections


def udp_seed(point: Any) -> str:
    """Return the seed of the UDP flow's times in the plan."""
    (run,) = (each.run for each in build_plan(point).sources if each.name == "source-call")
    return str(run[run.index("--seed") + 1])


def test_a_draw_is_the_flows_own(tmp_path: Path) -> None:
    """A flow's start does not depend on the other flows of the experiment."""
    alone = TWO | {"flows": TWO["flows"][:1], "datagrams": []}
    both, one = (
        starts_s(load_point(f"{write_experiment(tmp_path, each)}@ecn=on,seed=2"))
        for each in (TWO, alone)
    )
    assert {name: both[name] for name in one} == one


@pytest.mark.parametrize(
    ("fields", "most_s"), [({"start_jitter_ms": 0}, 0), ({"duration_s": 0.6}, 0.06)]
)
def test_how_late_a_flow_starts(tmp_path: Path, fields: dict[str, Any], most_s: float) -> None:
    """A flow starts at most `start_jitter_ms` and a tenth of its duration later."""
    file = write_experiment(tmp_path, TWO | fields)
    late = [
        each
        for seed in range(1, 12)
        for each in starts_s(load_point(f"{file}@ecn=on,seed={seed}")).values()
    ]
    assert most_s * 0.8 <= max(late) <= most_s


def test_a_seed_that_is_set_already(tmp_path: Path) -> None:
    """Repetitions are refused if the file or an axis already sets the seed."""
    axis = {"draw": {"set": ["seed"], "to": [1, 2]}}
    said = "seeds: the axis draw of matrix sets the seed already"
    assert problems_of(write_experiment(tmp_path, SMALL | {"seeds": 2, "matrix": axis})) == [said]
    with pytest.raises(SpecError, match=said):
        point_names(str(write_experiment(tmp_path, SMALL | {"matrix": axis})), 2)
    with pytest.raises(SpecError, match="count from 1, got seed 7"):
        point_names(str(write_experiment(tmp_path, SMALL | {"seed": 7})), 2)


@pytest.mark.parametrize("seed", ["0", "1001", "x", "01"])
def test_no_such_seed(tmp_path: Path, seed: str) -> None:
    """A seed is a number from 1 to 1000."""
    with pytest.raises(SpecError, match="no point"):
        load_point(f"{write_experiment(tmp_path, SMALL)}@seed={seed}")
