"""Repetitions of points: spread, statistics, and the seeds for which a statement holds."""

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest
from support.synthetic_run import finding, manifest, metrics_of

from twoway.contract.judge import Verdict
from twoway.manifest import Manifest
from twoway.report.flow_table import sweep_table
from twoway.report.judging import repeated_name
from twoway.report.repetitions import summarise_runs, without_seed, write_held
from twoway.report.statistics import Spread, spread

PASS, FAIL, UNTOLD = Verdict.AS_STATED, Verdict.CHANGED, Verdict.CANNOT_TELL


@pytest.mark.parametrize(
    ("verdicts", "words"),
    [
        ([PASS] * 5, "holds for all 5 seeds"),
        ([PASS] * 4 + [FAIL], "holds for most, 4 of 5 seeds: the spread decides it"),
        ([PASS, FAIL], "holds for some, 1 of 2 seeds: the spread decides it"),
        ([FAIL] * 3, "holds for none of 3 seeds"),
        ([PASS, PASS, UNTOLD], "holds for all 2 seeds; 1 cannot be told"),
        ([UNTOLD] * 2, "cannot be told for any of 2 seeds"),
        (
            [Verdict.EXPLAINED, Verdict.AGREES, Verdict.PASS],
            "holds for most, 2 of 3 seeds: the spread decides it",
        ),
    ],
)
def test_for_how_many_seeds(verdicts: list[Verdict], words: str) -> None:
    """A statement holds for all, most, some or no seeds; if they disagree, the spread decides."""
    assert write_held(verdicts) == words


def run(point: dict[str, Any], matrix: dict[str, Any], name: str) -> Manifest:
    """Make the manifest of a point."""
    document = manifest(findings=[finding("goodput.first", 1)])
    document["point"] = point
    document["experiment"] |= {"id": name, "matrix": matrix}
    return Manifest.model_validate(document)


AXIS = {"window": {"set": ["flows.first.window_packets"], "to": [8, 9]}}
SEEDS = {"seed": {"set": ["seed"], "to": [1, 2]}}


def test_a_point_without_its_seed() -> None:
    """A repetition belongs to its point, and an axis that sets the seed is an ordinary axis."""
    for point, matrix, name, whole, number in (
        ({"window": 8, "seed": 2}, AXIS, "a@window=8,seed=2", "a@window=8", 2),
        ({"seed": 1}, {}, "a@seed=1", "a", 1),
        ({"seed": 1}, SEEDS, "a@seed=1", "a@seed=1", None),
        ({"window": 8}, AXIS, "a@window=8", "a@window=8", None),
    ):
        here = run(point, matrix, name)
        assert (without_seed(here), here.repetition) == (whole, number)


def test_claims_against_another_run_are_of_the_same_seed() -> None:
    """A repetition is compared with the other run's repetition of the same seed."""
    here = run({"seed": 3}, {}, "a@seed=3")
    assert repeated_name("b", here) == "b@seed=3"
    assert repeated_name("b@window=8", here) == "b@window=8,seed=3"
    assert repeated_name("b", run({}, {}, "a")) == "b"


def test_the_table_of_a_sweep_has_quantiles() -> None:
    """Repetitions of a point are three rows: least, median, most; another point is one row."""
    families = ("goodput", "retransmitted", "rtt_min", "rtt_median", "rtt_p95")
    names = [f"{family}.{each}" for family in families for each in ("first", "second")]
    metrics = [
        metrics_of(manifest(), {name: {"value": value, "unit": "1"} for name in names})
        for value in (1, 2, 4)
    ]
    seeds = [run({"seed": seed}, {}, f"a@seed={seed}") for seed in (1, 2, 3)]
    rows = [(each.experiment.id, each, m) for each, m in zip(seeds, metrics, strict=True)]
    lines = sweep_table([*rows, ("b", run({}, {}, "b"), metrics[2])])
    goodputs = {line.split("  ")[0]: line.split()[-7] for line in lines[1:] if "first" in line}
    assert goodputs == {"a, least of 3": "1", "a, median of 3": "2", "a, most of 3": "4", "b": "4"}
    assert list(summarise_runs(metrics)) == [
        "least",
        "lower quartile",
        "median",
        "upper quartile",
        "most",
    ]


# Statistics of repeated runs against tables and by hand.


def spread_of(values: Iterable[float | None]) -> Spread:
    """Return the spread of values; only some are defined."""
    found = spread([*values])
    assert found
    return found


def test_spread_of_values() -> None:
    """Mean, deviation, quartiles and extremes are those of the defined values."""
    found = spread_of([5, None, 1, 2, 4, 3])
    assert found[:6] == (5, 1, 2, 3, 4, 5)
    assert found.mean == 3
    assert found.deviation == pytest.approx(math.sqrt(2.5))
    assert spread([None]) is None


@pytest.mark.parametrize(("draws", "t"), [(2, 12.706), (5, 2.776), (10, 2.262), (31, 2.042)])
def test_the_interval_of_the_mean_is_students(draws: int, t: float) -> None:
    """Half the mean's interval is t times the standard error, with t as tables print it."""
    values = [float(each) for each in range(draws)]
    found = spread_of(values)
    expected = t * float(np.std(values, ddof=1)) / math.sqrt(draws)
    assert found.margin == pytest.approx(expected, rel=5e-4)


@pytest.mark.parametrize(("draws", "outside"), [(6, 0), (8, 0), (9, 1), (20, 5), (30, 9)])
def test_the_interval_of_the_median_is_an_order_statistic(draws: int, outside: int) -> None:
    """The median's interval leaves out as many draws at each end as binomial tables say."""
    found = spread_of(range(draws))
    assert (found.median_low, found.median_high) == (outside, draws - 1 - outside)


def test_few_draws_have_no_interval() -> None:
    """One draw has no deviation, and five have no interval of the median."""
    one, five = spread_of([1.0]), spread_of(range(5))
    assert math.isnan(one.deviation)
    assert math.isnan(one.margin)
    assert math.isnan(five.median_low)


def test_draws_in_two_groups_are_noticed() -> None:
    """Draws near two values are two groups; draws from one distribution are not."""
    found = spread_of([1.0, 1.1, 0.9, 1.0, 9.0, 9.1, 8.9, 9.0])
    assert list(found.groups) == pytest.approx([1, 9])
    even = spread_of([float(each) for each in range(10)])
    assert even.groups == ()
    # The share of one BBR beside three CUBIC at 4 BDP, as a user had it.
    shares = spread_of([0.19, 0.22, 0.75, 0.26, 0.18, 0.14, 0.26, 0.59, 0.72, 0.27])
    assert list(shares.groups) == pytest.approx([0.217, 0.687], abs=0.001)
    eight = spread_of([0.13, 0.17, 0.17, 0.19, 0.22, 0.25, 0.53, 0.56])
    assert len(eight.groups) == 2
