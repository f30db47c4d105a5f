"""No two flows draw the same random numbers, unless their file says so."""

from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from support.running import SMALL, write_experiment

from twoway.description.draws import traffic_seed
from twoway.plan.plan import build_plan
from twoway.runs.points import load_point

ENDS = {"from": "h1", "to": "h2"}
TCP: dict[str, Any] = {**ENDS, "congestion": "reno"}
UDP: dict[str, Any] = {**ENDS, "rate_mbit": 4}
# Flows of each kind of random traffic, without their names: the experiment's field, the flow's
# fields, and the one of these that a seed is in.
TRANSFERS, FILM = {"per_s": 20, "mean_bytes": 50_000}, {"mean_mbit": 1, "frames_per_s": 25}
PAUSES = {"mean_on_s": 0.1, "mean_off_s": 0.1}
RANDOM: dict[str, tuple[str, dict[str, Any], str | None]] = {
    "transfers": ("flows", {**TCP, "transfers": TRANSFERS}, "transfers"),
    "film": ("flows", {**TCP, "film": FILM}, "film"),
    "films": ("flows", {**TCP, "count": 2, "film": FILM}, "film"),
    "poisson": ("datagrams", {**UDP, "arrivals": "poisson"}, None),
    "on-off": ("datagrams", {**UDP, "on_off": PAUSES}, None),
    "udp-film": ("datagrams", {**UDP, "film": {"frames_per_s": 25}}, None),
}
# The options of a source that differ between any two flows.
OWN = {"--to", "--port", "--source-port"}


def with_seed(flow: dict[str, Any], inside: str | None, seed: int | None) -> dict[str, Any]:
    """Return a flow with a seed, in the field that has it."""
    if seed is None:
        return flow
    return flow | ({inside: {**flow[inside], "seed": seed}} if inside else {"seed": seed})


def drawn(folder: Path, kind: str, *seeds: int | None, **fields: Any) -> list[str]:
    """Return what each source of some flows of one kind sends and when, without its ports."""
    field, flow, inside = RANDOM[kind]
    flows = [
        {"name": name, **with_seed(flow, inside, seed)}
        for name, seed in zip("abc", seeds, strict=False)
    ]
    document = SMALL | {"flows": [], field: flows, "duration_s": 20} | fields
    point = load_point(str(write_experiment(folder, document)))
    found: dict[str, list[str]] = defaultdict(list)
    for source in build_plan(point).sources:
        for line in source.stdin or (" ".join(source.run),):
            before, _, options = line.partition(" --")
            if "send" not in before.split():
                continue
            name = before.split()[-1] if field == "flows" else source.name
            pairs = (option.partition(" ") for option in f"--{options}".split(" --"))
            rest = [f"{word} {value}" for word, _, value in pairs if f"--{word}" not in OWN]
            found[name.partition("-")[0] if kind == "transfers" else name] += rest
    return [" ".join(each) for each in found.values()]


@pytest.mark.parametrize("kind", RANDOM)
def test_flows_with_default_fields_differ(tmp_path: Path, kind: str) -> None:
    """Three flows of one kind with default fields send other amounts, or at other times."""
    found = drawn(tmp_path, kind, None, None, None)
    assert len(found) >= 3
    assert len(set(found)) == len(found)


@pytest.mark.parametrize("kind", RANDOM)
def test_the_runs_seed_draws_anew(tmp_path: Path, kind: str) -> None:
    """Another seed of the run draws other amounts or times for each flow, named seeds included."""
    for given in (None, 7):
        one, other = (drawn(tmp_path, kind, given, given, seed=seed) for seed in (1, 2))
        assert not {*one} & {*other}


@pytest.mark.parametrize("kind", ["transfers", "film", "poisson", "on-off", "udp-film"])
def test_equal_seeds_are_in_step(tmp_path: Path, kind: str) -> None:
    """Two flows whose fields name one seed send the same at the same times."""
    one, same, other = drawn(tmp_path, kind, 7, 7, 8)
    assert one == same != other


def test_a_seed_is_of_one_name() -> None:
    """A seed depends on the run's seed and the whole name, and a named one is kept in seed 1."""
    names = ["a", "b", "a-1", "a-11", "1 a"]
    seeds = {traffic_seed(seed, name, None) for seed in (1, 2, 11) for name in names}
    assert len(seeds) == 15
    assert max(seeds) < 1 << 64
    assert (traffic_seed(1, "a", 7), traffic_seed(3, "a", 7)) == (7, 2_000_007)
