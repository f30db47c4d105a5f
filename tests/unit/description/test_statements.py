"""Statements of a file about its metrics: refusals, and the statements of each point."""

import re
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from support.running import CLAIMED, SMALL, problems_of, write_experiment
from support.warm_command import twoway

from twoway.contract.statements import Contradicted
from twoway.description.matrix import AxisValues
from twoway.description.point import point_names
from twoway.description.statements import full_run
from twoway.errors import SpecError
from twoway.paths import experiment_files
from twoway.runs.points import load_point, reference_problems, refuse_lost_references
from twoway.theory import predictions
from twoway.theory.registry import known_theories

WINDOW = {"set": ["flows.left.window_packets", "flows.right.window_packets"], "to": [4, 8]}
PREDICTED = {"metric": "efficiency.left", "tolerance": 0.1, "why": "a tenth"}
FOUND: dict[str, Any] = {
    "finding": "Half of the line is used.",
    "metric": ["efficiency.left", "efficiency.right"],
    "measured": {"window=4": [0.5, 0.6], "window=8": 0.7},
    "tolerance": 0.05,
}
# The same finding over the axis: a list of results for each window.
DRAWN: dict[str, Any] = {**FOUND, "over": "window", "measured": {"": [[0.5, 0.6], 0.7]}}
TIMES = ["experiment.duration_s", "experiment.warm_up_s"]
REASON = "experiment.flows.right.window_packets"
BY, START = {"explained_by": "kalampoukas-5.2"}, "experiment.flows.right.start_s"
ISOLATED = {"why": "x", "removes": [REASON]}
AT_8 = {"at": {"window": 8}}
THEORY = {"theory": "kalampoukas"}
ON_RECORD = {"why": "x", "since": "2026-11-24"}


def _one(section: str, base: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {section: [{**base, **fields}]}


_claim, _predict = partial(_one, "claims", CLAIMED), partial(_one, "predictions", PREDICTED)
_find, _draw = partial(_one, "findings", FOUND), partial(_one, "findings", DRAWN)


def _swept(folder: Path, **fields: Any) -> str:
    return str(write_experiment(folder, {**SMALL, "matrix": {"window": WINDOW}, **fields}))


@pytest.mark.parametrize("tolerance", ["0.5 %", "0.5%", 0.005])
def test_a_tolerance_is_a_number_or_a_share(tmp_path: Path, tolerance: str | float) -> None:
    """A tolerance in per cent is that share of the theory's value."""
    said = {**PREDICTED, "tolerance": tolerance}
    experiment = write_experiment(
        tmp_path, {**SMALL, "theory": "kalampoukas", "predictions": [said]}
    )
    (prediction,) = load_point(str(experiment)).predictions
    assert prediction.value is not None
    expected = 0.005 if tolerance == 0.005 else 0.005 * prediction.value
    assert prediction.tolerance == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        (_claim(at_most=1), "claims.0: value, or at_least or at_most, must"),
        (_claim(value=-13, precision=13), "precision: must be below the value's size (13), got 13"),
        (_claim(value=[13, 14]), "value: 2 values for 1 metrics"),
        (_claim(precision=[1, 2]), "precision: 2 values for 1 metrics"),
        ({**THEORY, **_predict(tolerance=[])}, "tolerance: 0 values for 1 metrics"),
        (_claim(value=None), "claims.0: value, or at_least or at_most, must"),
        (_claim(precision=None), "precision: goes with a value"),
        (_claim(value="printed"), 'claims.0: "printed", but the file names no theory'),
        (_claim(at={"rate": 8}), 'at: no axis "rate" in matrix'),
        (_claim(at={"window": 7}), "at.window: 7 is not one of its values: 4, 8"),
        (_claim(**AT_8), "elsewhere: give the reason why `at` leaves out window=4"),
        (_claim(elsewhere="everywhere"), "elsewhere: `at` leaves no point out"),
        (_claim(**AT_8, elsewhere="enough"), "unclaimed: window=4 has no statement, and no reason"),
        (
            _claim(differs=[{"why": "x", "at": {"window": 5}}]),
            "differs.0.at.window: 5 is not one of its values: 4, 8",
        ),
        (
            _claim(differs=[{"why": "x", "metrics": ["jain_index"]}]),
            "differs.0.metrics: not the statement's: jain_index",
        ),
        (
            _claim(differs=[{**ISOLATED, "not_comparable": True, "explained_by": "aqm"}]),
            "differs.0.explained_by: not allowed for metrics that are not comparable",
        ),
        (
            _claim(differs=[{"why": "x", "explained_by": "aqm"}]),
            "differs.0.removes: goes with `explained_by`; give both or none",
        ),
        (
            _claim(differs=[ISOLATED]),
            "differs.0.removes: goes with `explained_by`; give both or none",
        ),
        (
            _claim(differs=[{"why": "x", "chance": True}]),
            "differs.0.chance: needs `explained_by`, the run in which the claim holds",
        ),
        (_claim(where=None), "where: required, for the file names no source"),
        (
            _claim(print="words", reading=None),
            "reading: required unless the value is in digits",
        ),
        (_claim(print=None), "print: required beside a number: digits, formula or words"),
        (
            {**THEORY, **_claim(value="printed")},
            "print: the paper's formula gives this value or bound, got digits",
        ),
        (
            _claim(differs=[{**ISOLATED, **BY, "removes": [START]}]),
            "differs.0.chance: must be true, because another start explains nothing",
        ),
        (
            _claim(differs=[{**ISOLATED, **BY, "removes": ["experiment.profile"]}]),
            "differs.0.removes: a whole profile is no reason; take a run with this one",
        ),
        (
            _claim(differs=[{**ISOLATED, "removes": ["window"]}]),
            "differs.0.removes.0: must be a parameter's path",
        ),
        (
            _predict(contradicted=[{**ON_RECORD, "at": {"window": 5}}]),
            "contradicted.0.at.window: 5 is not one of its values: 4, 8",
        ),
        (
            _predict(**AT_8, elsewhere="x", contradicted=[{**ON_RECORD, "at": {"window": 4}}]),
            "contradicted.0.at: no point of the statement's `at`",
        ),
        (
            _predict(contradicted=[{"why": "x", "since": "today"}]),
            "contradicted.0.since: must be a valid date",
        ),
        ({"predictions": [PREDICTED]}, "predictions.0.theory: required, for the file names no"),
        (_predict(value=0.5), "value: must be 'theory', got 0.5"),
        (
            {**THEORY, **_predict(value="theory", at_most="theory")},
            "predictions.0: one of value, at_least, at_most is the theory's, got value, at_most",
        ),
        ({**THEORY, **_predict(tolerance=None)}, "tolerance: goes with a value, got None"),
        (_predict(theory="astrology"), 'point window=4: theory: no "astrology"; there are: '),
        (
            {**THEORY, **_predict(metric="jain_index")},
            (
                "point window=4: predictions.0: theory kalampoukas does not predict "
                "jain_index; it has:"
            ),
        ),
        (
            {"theory": "kalampoukas", "predictions": [PREDICTED, PREDICTED]},
            'point window=4: predictions.1.metric: "efficiency.left" is in predictions.0 already',
        ),
        (_find(measured={"window=4": 0.5}), "measured: no result for window=8"),
        (
            _find(measured={"window=4": 0.5, "window=5": 1, "window=8": 1}),
            "measured.window=5: no such point, or not one of `at`",
        ),
        (
            _find(measured={"window=4": 0.5, "window": {4: 0.5, 8: 0.7}}),
            "measured: window=4 is given twice",
        ),
        (_find(measured=[0.5]), "measured: 1 values for 2 metrics"),
        (_draw(over="seed"), 'findings.0.over: no axis "seed" in matrix'),
        (
            _draw(at={"window": 4}, elsewhere="x"),
            "over: has all values of window, which `at` leaves out",
        ),
        (
            _draw(measured=0.5),
            "measured: with `over`, results by the names of points without that axis",
        ),
        (_draw(measured={"": [0.5]}), "measured.: 1 results for 2 values of window"),
        (
            _draw(measured={"window=4": [0.5, 0.6]}),
            "measured.window=4: no such point, or not one of `at`",
        ),
    ],
)
def test_mistakes_are_named(tmp_path: Path, fields: dict[str, Any], problem: str) -> None:
    """Each mistake in a statement is reported by its field; omitted points need a reason."""
    problems = problems_of(_swept(tmp_path, **fields))
    places = tuple(f"{place}{problem}" for place in ("", *(f"{field}.0." for field in fields)))
    assert any(found.startswith(places) for found in problems), problems


def test_a_claim_has_the_usual_place_and_precision(tmp_path: Path) -> None:
    """A claim without these is from the file's place, and precise to half of its last digit."""
    source = {"paper": "Some, title, 1991", "where": "figure 3"}
    bare = {key: value for key, value in CLAIMED.items() if key not in ("where", "reading")}
    experiment = write_experiment(tmp_path, {**SMALL, "source": source, "claims": [bare]})
    (claim,) = load_point(str(experiment)).claims
    assert (claim.where, claim.why) == ("figure 3", "half of the last digit")


def test_a_table_of_results_has_axes_above_their_values(tmp_path: Path) -> None:
    """In a table of results an axis is above its values, and axes have any order."""
    table = {
        "delay=1": {"window": {4: 1, 8: 2}},
        "window": {4: {"delay": {2: 3}}, 8: {"delay=2": 4}},
    }
    matrix = {"window": WINDOW, "delay": {"set": ["profile.forward.delay_ms"], "to": [1, 2]}}
    path = _swept(tmp_path, matrix=matrix, **_find(metric="efficiency.left", measured=table))
    found = {name.partition("@")[2]: load_point(name).findings for name in point_names(path)}
    assert {name: one.value for name, (one,) in found.items()} == {
        "window=4,delay=1": 1,
        "window=4,delay=2": 3,
        "window=8,delay=1": 2,
        "window=8,delay=2": 4,
    }


def test_results_over_an_axis_are_in_the_order_of_its_values(tmp_path: Path) -> None:
    """A finding over an axis has a list of results for each value, in the axis's order."""
    here, drawn = tmp_path / "here", tmp_path / "drawn"
    values = []
    for folder, found in ((here, FOUND), (drawn, DRAWN)):
        folder.mkdir()
        path = _swept(folder, findings=[found])
        values.append([[f.value for f in load_point(n).findings] for n in point_names(path)])
    assert values == [[[0.5, 0.6], [0.7, 0.7]]] * 2


@pytest.mark.parametrize("bound", ["at_least", "at_most"])
def test_predictions_are_numbers_of_code(tmp_path: Path, bound: str) -> None:
    """A prediction has its theory's number for each point, as a value or as a bound."""
    said = [PREDICTED, {"metric": "efficiency.right", bound: "theory", "why": "a bound"}]
    path = _swept(tmp_path, theory="kalampoukas", predictions=said)
    found = [load_point(name).predictions for name in point_names(path)]
    values = [row.value for row, _ in found]
    assert [row.theory for row, _ in found] == ["kalampoukas", "kalampoukas"]
    assert None not in values
    assert values[0] != values[1]
    assert [getattr(row, bound) for _, row in found] == values  # both windows are equal


def test_a_contradiction_is_of_the_points_that_it_names(tmp_path: Path) -> None:
    """`contradicted` marks only its metrics at its points, with day and reason."""
    said = {
        **PREDICTED,
        "metric": FOUND["metric"],
        "contradicted": [{**ON_RECORD, **AT_8, "metrics": ["efficiency.left"]}],
    }
    path = _swept(tmp_path, theory="kalampoukas", predictions=[said])
    found = [[row.contradicted for row in load_point(n).predictions] for n in point_names(path)]
    known = Contradicted(since=date(2026, 11, 24), why="x")
    assert found == [[None, None], [known, None]]


def test_a_claim_is_held_to_a_number_a_formula_or_words(tmp_path: Path) -> None:
    """`print` is a claim's form; without it a formula is one, as a bound too, and a bound words."""
    free = {**CLAIMED, "print": None, "value": None, "precision": None}
    formula = {**CLAIMED, "print": None, "value": "printed"}
    bounds = [{**free, "at_most": "printed"}, {**free, "at_most": 1}]
    figures = {**free, "at_most": 0.15, "print": "digits"}
    path = write_experiment(
        tmp_path, {**SMALL, "theory": "kalampoukas", "claims": [CLAIMED, formula, *bounds, figures]}
    )
    found = [claim.form for claim in load_point(str(path)).claims]
    assert found == ["digits", "formula", "formula", "words", "digits"]


def test_findings_have_a_value_for_each_metric_and_point(tmp_path: Path) -> None:
    """A list in a finding has a value for each metric; a single number is for all of them."""
    path = _swept(tmp_path, findings=[FOUND])
    found = [[row.value for row in load_point(name).findings] for name in point_names(path)]
    assert found == [[0.5, 0.6], [0.7, 0.7]]


def test_a_difference_is_of_the_points_and_metrics_it_names(tmp_path: Path) -> None:
    """`differs` marks only its metrics at its points."""
    differs = [{"why": "small", "at": {"window": 4}, "metrics": ["efficiency.left"]}]
    claim = {**CLAIMED, "metric": FOUND["metric"], "differs": differs}
    path = _swept(tmp_path, claims=[claim])
    known = [[row.differs is not None for row in load_point(n).claims] for n in point_names(path)]
    assert known == [[True, False], [False, False]]


@pytest.mark.parametrize(
    ("run", "point", "full"),
    [
        ("other@a=1", {"window": 4}, "other@a=1"),
        ("other@a=1,window", {"window": 4, "delay": 2}, "other@a=1,window=4"),
        ("here@window,delay=1", {"window": 4, "delay": 2}, "here@window=4,delay=1"),
        ("here@nothing=1", {"window": 4}, "here@nothing=1"),
        ("here@window=8", {"window": 4, "delay": 2}, "here@window=8,delay=2"),
        ("here", {"window": [4, 5]}, "here@window=4+5"),
        ("here", {}, "here"),
    ],
)
def test_a_run_is_completed_by_the_point(run: str, point: AxisValues, full: str) -> None:
    """A run takes axes without a value from this point; one of this experiment takes all others."""
    assert full_run(run, "here", point) == full


@pytest.mark.slow
@pytest.mark.parametrize(
    ("differs", "problem"),
    [
        ({"explained_by": "aqm@up_mbit=8"}, 'no point "up_mbit=8"'),
        ({"explained_by": "nosuch"}, "nosuch: no such experiment"),
        (
            {"explained_by": "kalampoukas-5.2", "metric_there": "efficiency.up"},
            'kalampoukas-5.2 has no metric "efficiency.up"',
        ),
    ],
)
def test_what_a_claim_refers_to_exists(
    tmp_path: Path, differs: dict[str, Any], problem: str
) -> None:
    """A missing run or metric that should explain a difference is named."""
    claim = {**CLAIMED, "differs": [{"why": "x", "removes": [REASON, *TIMES], **differs}]}
    point = load_point(str(write_experiment(tmp_path, {**SMALL, "claims": [claim]})))
    (found,) = reference_problems(point)
    assert problem in found
    with pytest.raises(SpecError, match=re.escape(problem)):
        refuse_lost_references([point, point])
    path = tmp_path / "small.yml"
    for command in ("run", "sweep"):
        refused = twoway(command, path, "--results", tmp_path / "results")
        assert refused.returncode == 2
        assert refused.stderr.count(problem) == 1


MORE = "differs in more than it removes: "


@pytest.mark.parametrize(
    ("removes", "problems"),
    [
        ([REASON, *TIMES], []),
        (TIMES, [f"{MORE}{REASON}"]),
        (["experiment.flows", *TIMES], [f"{MORE}{REASON}", "not differ in experiment.flows, "]),
        (["experiment.flow"], [f"{MORE}experiment.duration_s, experiment.warm_up_s, ", "flow, "]),
        (
            [REASON, "experiment.stack", *TIMES],
            ["does not differ in experiment.stack, which it should remove: name each value"],
        ),
    ],
)
def test_a_run_that_explains_removes_the_reason_alone(
    tmp_path: Path, removes: list[str], problems: list[str]
) -> None:
    """An explaining run differs in each parameter that `removes` has in full; formulas are none."""
    differs = {"why": "x", "explained_by": "kalampoukas-5.2", "removes": removes}
    said = {"claims": [{**CLAIMED, "differs": [differs]}], "metrics": {"twice": "2 * both_busy"}}
    point = load_point(str(write_experiment(tmp_path, {**SMALL, **said})))
    found = list(reference_problems(point))
    assert len(found) == len(problems)
    assert all(part in each for part, each in zip(problems, found, strict=True))


@pytest.mark.parametrize("reason", ["", "  "])
def test_a_reason_has_words(tmp_path: Path, reason: str) -> None:
    """A difference that is not compared, or not explained, needs a reason."""
    claim = {**CLAIMED, "differs": [{"why": reason, "not_comparable": True}]}
    with pytest.raises(SpecError, match=r"claims\.0\.differs\.0\.why: "):
        load_point(str(write_experiment(tmp_path, {**SMALL, "claims": [claim]})))


def test_every_theory_is_used() -> None:
    """Each theory is named by an experiment or used by another theory."""
    files = [path.read_text("utf-8") for path in experiment_files().values()]
    modules = [path.read_text("utf-8") for path in Path(predictions.__path__[0]).glob("*.py")]
    for theory in known_theories():
        named = any(f"theory: {theory}\n" in text for text in files)
        used = any(f"theory.predictions.{theory} import" in text for text in modules)
        assert named or used, theory
