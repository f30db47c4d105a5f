"""Films and transfers are drawn by their papers' rules, and no two flows draw the same numbers."""

import statistics
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.running import SMALL, write_experiment

from twoway.description.draws import traffic_seed
from twoway.description.experiment import Flow
from twoway.description.traffic.film import Film
from twoway.description.traffic.registry import kinds
from twoway.description.traffic.traffic import Span
from twoway.description.traffic.transfers import Transfers
from twoway.plan.plan import build_plan
from twoway.runs.points import load_point

FILM = {"mean_mbit": 10, "frames_per_s": 25}
TRANSFERS = {"per_s": 20, "mean_bytes": 50_000}


def span(seconds: float) -> Span:
    """Make a flow of some seconds, with packets of 1500 bytes."""
    return Span(seconds, 1500, 1460)


def test_a_kind_is_a_file() -> None:
    """Each file of traffic adds its field to a flow, and the field selects the file's class."""
    assert kinds().keys() <= Flow.model_fields.keys()
    values = {"rate_mbit": 3, "film": FILM, "transfer": {"bytes": 9}, "transfers": TRANSFERS}
    ends = {"name": "left", "from": "h1", "to": "h2", "congestion": "reno"}
    assert Flow.model_validate(ends).traffic is None
    for field, value in values.items():
        assert type(Flow.model_validate({**ends, field: value}).traffic) is kinds()[field]


def test_a_constant_rate_counts_headers() -> None:
    """At 3 Mbit/s a packet of 1500 bytes, with a segment of 1460, is written every 4 ms."""
    rate = kinds()["rate_mbit"](3)  # type: ignore[call-arg] # pydantic's
    assert rate.source_options(span(1)) == ["interval 4000000", "sizes 1460"]
    assert rate.packet_mbit(span(1)) == 3


def test_a_film_is_larger_with_headers() -> None:
    """Each packet of a film's frames adds 40 bytes to its mean rate."""
    film = Film.model_validate(FILM)
    packets = sum(-(-size // 1460) for size in film.frame_bytes(span(60)))
    assert film.packet_mbit(span(60)) == pytest.approx(10 + packets * 40 * 8 / 60e6, abs=1e-4)


@pytest.mark.parametrize("seconds", [1, 70, 10_000])
def test_film_has_its_mean_rate(seconds: float) -> None:
    """The frames of a film of any length add up to its mean rate, each rounded to a byte."""
    film = Film.model_validate(FILM)
    sizes = film.frame_bytes(span(seconds))
    assert len(sizes) == seconds * 25
    assert sum(sizes) * 8 / seconds == pytest.approx(10e6, abs=len(sizes) * 8 / seconds)


def test_film_varies_as_it_says() -> None:
    """A long film has a coefficient of variation of 0.97 and a largest frame of 6.7 means."""
    sizes = Film.model_validate(FILM).frame_bytes(span(10_000))
    mean = statistics.mean(sizes)
    assert statistics.pstdev(sizes) / mean == pytest.approx(0.97, abs=0.02)
    assert max(sizes) / mean == pytest.approx(6.7, abs=0.1)


def test_film_is_of_groups() -> None:
    """In a group the first frame is six times a B frame, and every third frame twice."""
    group = Film.model_validate(FILM).frame_bytes(span(10))[:12]
    ratios = [size / group[1] for size in group]
    assert ratios == pytest.approx([6, 1, 1, 2, 1, 1, 2, 1, 1, 2, 1, 1], rel=1e-3)


def test_transfers_are_poisson_and_exponential() -> None:
    """20 000 gaps and sizes have the given mean and a deviation of the same size."""
    found = Transfers(per_s=20, mean_bytes=50_000).arrivals(span(1000))
    gaps = np.diff([after_s for after_s, _ in found])
    sizes = [payload_bytes for _, payload_bytes in found]
    for drawn, mean in ((gaps, 0.05), (sizes, 50_000)):
        assert np.mean(drawn) == pytest.approx(mean, rel=3 / 20_000**0.5)
        assert np.std(drawn) == pytest.approx(mean, rel=5 / 20_000**0.5)


def test_another_seed_is_another_series() -> None:
    """One seed always gives one series, and another seed gives another."""
    spans = [replace(span(9), seed=seed) for seed in (1, 1, 2)]
    films = [Film.model_validate(FILM).frame_bytes(each) for each in spans]
    assert films[0] == films[1] != films[2]
    arrivals = [Transfers.model_validate(TRANSFERS).arrivals(each) for each in spans]
    assert arrivals[0] == arrivals[1] != arrivals[2]


@pytest.mark.slow
def test_sizes_of_three_distributions() -> None:
    """Sizes are equal, exponential or Pareto with one mean; arrivals are the same."""
    long = span(10_000)
    drawn = {
        sizes: Transfers.model_validate({**TRANSFERS, "sizes": sizes, "shape": shape}).arrivals(
            long
        )
        for sizes, shape in (("constant", None), ("exponential", None), ("pareto", 3.0))
    }
    starts = [[start for start, _ in each] for each in drawn.values()]
    assert starts[0] == starts[1] == starts[2]
    sizes = {name: np.array([size for _, size in each]) for name, each in drawn.items()}
    assert (sizes["constant"] == 50_000).all()
    # Standard deviations over the mean: 1, and 1 / sqrt(a (a - 2)) for Pareto's shape a.
    for name, deviation in (("exponential", 1), ("pareto", 3**-0.5)):
        error = 4 * deviation / len(sizes[name]) ** 0.5
        assert sizes[name].mean() == pytest.approx(50_000, rel=error)
    assert sizes["pareto"].min() >= 50_000 * 2 / 3
    # One size in eight is at least twice the smallest.
    share = np.mean(sizes["pareto"] > 2 * 50_000 * 2 / 3)
    assert share == pytest.approx(1 / 8, rel=4 * (7 / len(starts[0])) ** 0.5)


# No two flows draw the same random numbers, unless their file says so.

ENDS = {"from": "h1", "to": "h2"}
TCP: dict[str, Any] = {**ENDS, "congestion": "reno"}
UDP: dict[str, Any] = {**ENDS, "rate_mbit": 4}
# Flows of each kind of random traffic, without their names: the experiment's field, the flow's
# fields, and the one of these that a seed is in.
DRAWN_TRANSFERS, DRAWN_FILM = (
    {"per_s": 20, "mean_bytes": 50_000},
    {"mean_mbit": 1, "frames_per_s": 25},
)
PAUSES = {"mean_on_s": 0.1, "mean_off_s": 0.1}
RANDOM: dict[str, tuple[str, dict[str, Any], str | None]] = {
    "transfers": ("flows", {**TCP, "transfers": DRAWN_TRANSFERS}, "transfers"),
    "film": ("flows", {**TCP, "film": DRAWN_FILM}, "film"),
    "films": ("flows", {**TCP, "count": 2, "film": DRAWN_FILM}, "film"),
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
