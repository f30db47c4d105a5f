"""Repetitions of points: spread, and the number of seeds for which a statement holds."""

from typing import Any

import pytest
from support.synthetic_run import finding, manifest, metrics_of

from twoway.contract.judge import Verdict
from twoway.manifest import Manifest
from twoway.report.flow_table import sweep_table
from twoway.report.judging import repeated_name
from twoway.report.repetitions import held, summarised, without_seed

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
    assert held(verdicts) == words


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
    assert goodputs == {
        "a, least of 3": "1",
        "a, median of 3": "2",
        "a, most of 3": "4",
        "b": "4",
    }
    assert list(summarised(metrics)) == [
        "least",
        "lower quartile",
        "median",
        "upper quartile",
        "most",
    ]
