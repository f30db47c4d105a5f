"""Each rule by which a run is judged, with a case that holds and one that fails."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from capture_analysis.errors import AnalysisError
from support.synthetic_run import (
    claim,
    edit_json,
    edit_manifest,
    finding,
    manifest,
    metrics_of,
    prediction,
    write_run,
)

from twoway.contract.judge import Verdict, judge, mark_verdict
from twoway.contract.metrics import FidelityRow, Metric, Metrics
from twoway.contract.statements import Bounds
from twoway.contract.verdicts import (
    BAD,
    GOOD,
    TELLS_LITTLE,
    VERDICTS,
    ClaimRow,
    FindingRow,
    PredictionRow,
    Row,
    Verdicts,
    row_in_words,
)
from twoway.manifest import Manifest
from twoway.measure.analysis import Analysis
from twoway.measure.document import compute
from twoway.measure.revision import revision
from twoway.report.judging import Measured, _changed, judge_run, judge_statements
from twoway.report.report import analyse_run

PEAK, GOODPUT, NONE = "queue_peak.forward", "goodput.first", "compression_factor.second"
HERE: dict[str, dict[str, Any]] = {
    PEAK: {"value": 4.0, "unit": "packets"},
    GOODPUT: {"value": 1.98, "unit": "Mbit/s"},
    NONE: {"value": None, "unit": "1"},
}
OTHER, OTHERS_PEAK = "other@buffer=20", "queue_peak.reverse"
CHANGED = "differs in warm_up_s 0.01 there 7.25, topology.pairs None there 2"
Elsewhere = Mapping[tuple[str, str], Metric]
Said = dict[str, Any]


def verdicts(
    *said: Said | FidelityRow, error: float | None = 0.0, elsewhere: Elsewhere | None = None
) -> Verdicts:
    """Return the verdicts on statements and checks of a run, beside other runs.

    Args:
        said: predictions, claims, findings and rows of fidelity.
        error: that of each metric of this run.
        elsewhere: metrics of other runs, each by run and metric.
    """
    sections: dict[str, list[Said]] = {"predictions": [], "claims": [], "findings": []}
    for each in said:
        if isinstance(each, dict):
            kind = "claims" if "claim" in each else "findings" if "finding" in each else ""
            sections[kind or "predictions"].append(each)
    document = manifest((), **sections)
    metrics = metrics_of(document, {name: {**row, "error": error} for name, row in HERE.items()})
    here = Manifest.model_validate(document)
    checks = tuple(each for each in said if isinstance(each, FidelityRow))
    return judge_statements(
        here,
        metrics.model_copy(update={"fidelity": checks}),
        lambda run: _other(here, metrics, run, elsewhere or {}),
    )


def _other(here: Manifest, metrics: Metrics, run: str, elsewhere: Elsewhere) -> Measured | None:
    """Make another run with some metrics, other warm-up and topology; None without metrics."""
    found = {metric: value for (of, metric), value in elsewhere.items() if of == run}
    if not found:
        return None
    changed = {"warm_up_s": 7.25, "topology": {"pairs": 2}}
    experiment = here.experiment.model_copy(update=changed)
    return Measured(
        here.model_copy(update={"experiment": experiment}),
        metrics.model_copy(update={"metrics": found}),
    )


def row_of(said: Said, **more: Any) -> Any:
    """Return the row of one statement."""
    (row,) = verdicts(said, **more).rows
    return row


def told(said: Said, **more: Any) -> tuple[Verdict, bool]:
    """Return the verdict on one statement, and whether its file lists it."""
    row = row_of(said, **more)
    return row.verdict, row.listed


def there(value: float | None, error: float | None = 0, run: str = OTHER) -> Elsewhere:
    """Make the peak of another run."""
    return {(run, PEAK): Metric(value=value, unit="packets", error=error)}


# Verdicts on a measurement of 4: value and tolerance, and the error of the measurement.
BESIDE_A_VALUE: dict[Verdict, list[tuple[float, float, float | None]]] = {
    Verdict.PASS: [(4, 0, 0), (5, 1, 0), (3, 1, 0), (5, 1, 1)],
    Verdict.FAIL: [(5.001, 1, 0), (2.999, 1, 0), (6.001, 1, 1), (1.999, 1, 1), (99, 1, 1)],
    Verdict.CANNOT_TELL: [
        *[(4, 1, 1.001), (5.001, 1, 0.5), (6, 1, 1), (2, 1, 1), (4, 0, 0.1)],
        *[(4, 1, None), (99, 1, None)],
    ],
}
# Likewise: least and most, and the error.
WITHIN_BOUNDS: dict[Verdict, list[tuple[float | None, float | None, float | None]]] = {
    Verdict.PASS: [(4, None, 0), (None, 4, 0), (3, 5, 0), (3, 5, 1)],
    Verdict.FAIL: [(4.001, None, 0), (None, 3.999, 0), (5.001, None, 1), (None, 2.999, 1)],
    Verdict.CANNOT_TELL: [
        *[(3.001, 5, 1), (3, 4.999, 1), (5, None, 1), (None, 3, 1), (3, None, None)]
    ],
}


def test_error_decides() -> None:
    """An error of 4 that reaches beyond an edge leaves the verdict open, even with a tolerance."""
    said = [
        (wanted, prediction(PEAK, value, tolerance=tolerance), error)
        for wanted, cases in BESIDE_A_VALUE.items()
        for value, tolerance, error in cases
    ]
    said += [
        (wanted, prediction(PEAK, at_least=least, at_most=most), error)
        for wanted, cases in WITHIN_BOUNDS.items()
        for least, most, error in cases
    ]
    wrong = [each for each in said if told(each[1], error=each[2])[0] is not each[0]]
    assert wrong == []


def test_decimal_fractions() -> None:
    """1.98 is within 0.02 of 2 and of 1.96, although their binary forms are not."""
    for value in (2, 1.96):
        assert told(prediction(GOODPUT, value, tolerance=0.02))[0] is Verdict.PASS
    missed = prediction(GOODPUT, 2, tolerance=0.02 - 1e-12)
    assert told(missed)[0] is Verdict.FAIL


def test_edges_in_decimals() -> None:
    """A measurement exactly on the edge of a tolerance, in decimals, is within it."""
    for value, tolerance, measured in (
        *((0.011, 0.009, 0.02), (0.021, 0.018, 0.003)),
        *((1e9, 1e9, 0), (-1e9, 1e9, 0)),
    ):
        said = Bounds(value=value, tolerance=tolerance)
        assert [judge(said, measured), judge(said, measured, 0.0)] == [Verdict.PASS] * 2


def test_value_without_tolerance() -> None:
    """Without a tolerance only the exact value holds, and any error leaves the verdict open."""
    said = Bounds(value=4)
    assert judge(said, 4) is Verdict.PASS
    assert judge(said, 4.5) is Verdict.FAIL
    assert judge(said, 4, 0.5) is Verdict.CANNOT_TELL


@pytest.mark.parametrize("metric", [NONE, "goodput.third"])
@pytest.mark.parametrize("error", [0, 1, None])
def test_undefined_fails(metric: str, error: float | None) -> None:
    """A prediction fails if its metric has no value or was not measured."""
    assert told(prediction(metric, 1, tolerance=1e9), error=error)[0] is Verdict.FAIL


def test_prediction_row() -> None:
    """A row repeats the prediction and adds value, unit and the limit's source."""
    said = prediction(GOODPUT, 2, tolerance=0.05, printed=2.5)
    own = {"measured": 1.98, "unit": "Mbit/s", "verdict": Verdict.PASS, "note": None}
    found = row_of(said).model_dump()
    assert found | said | own | {"listed": True} == found
    assert row_of(said, error=0.125).note == "this run's clock may change it by 0.12"
    assert row_of(said, error=None).note == "not measurable on this run's clock"
    row = row_of(prediction("goodput.third", 2))
    assert (row.measured, row.unit, row.note) == (None, "1", "no such metric")


ON_RECORD = {"since": "2026-11-24", "why": "a trip later"}


@pytest.mark.parametrize(
    ("value", "error", "row", "code"),
    [
        (5, 0, (Verdict.CONTRADICTED, True, "a trip later"), GOOD),
        (4, 0, (Verdict.PASS, False, "the file says that the run contradicts it"), BAD),
        (5, None, (Verdict.CANNOT_TELL, True, "not measurable on this run's clock"), 3),
    ],
)
def test_a_contradiction_on_record(
    value: float, error: float | None, row: tuple[Verdict, bool, str], code: int
) -> None:
    """A recorded contradiction fails no run; a recorded one that does not occur fails it."""
    said = prediction(PEAK, value, contradicted=ON_RECORD)
    found = verdicts(said, error=error)
    (got,) = found.predictions
    assert (got.verdict, got.listed, got.note) == row
    assert found.contradicted == ([got] if got.verdict is Verdict.CONTRADICTED else [])
    assert found.exit_code == code


@pytest.mark.parametrize(
    ("said", "error", "outcome"),
    [
        (claim(PEAK, 4), 0, (Verdict.AGREES, True)),
        (claim(PEAK, 5, tolerance=1), 0, (Verdict.AGREES, True)),
        (claim(PEAK, 5), 0, (Verdict.UNEXPLAINED, False)),
        (claim(PEAK, at_least=5), 0, (Verdict.UNEXPLAINED, False)),
        (claim(PEAK, 5), 1, (Verdict.CANNOT_TELL, True)),
        (claim(PEAK, 4), None, (Verdict.CANNOT_TELL, True)),
        (claim(NONE, 4), 0, (Verdict.UNEXPLAINED, False)),
    ],
)
def test_claim_agrees_or_differs(
    said: Said, error: float | None, outcome: tuple[Verdict, bool]
) -> None:
    """A claim agrees within its precision, or differs; its file must list the difference."""
    assert told(said, error=error) == outcome
    assert row_of(said).compared is None


DIFFERS = {"why": "another clock", "explained_by": None, "metric": None, "comparable": True}
EXPLAINED = {**DIFFERS, "explained_by": OTHER}


def test_listed_difference() -> None:
    """A listed difference that no run explains is called unexplained."""
    row = row_of(claim(PEAK, 5, differs=DIFFERS))
    assert (row.verdict, row.listed, row.note) == (Verdict.UNEXPLAINED, True, "another clock")


@pytest.mark.parametrize(
    ("printed", "more", "verdict"),
    [
        (4.5, {}, Verdict.PAPER_DIFFERS),
        (4.6, {}, Verdict.UNEXPLAINED),
        (None, {}, Verdict.UNEXPLAINED),
        (4.5, {"by": "simulation"}, Verdict.UNEXPLAINED),
        (4.5, {"formula": True}, Verdict.UNEXPLAINED),
        (4.5, {"differs": None}, Verdict.UNEXPLAINED),
    ],
)
def test_a_paper_that_contradicts_itself(
    printed: float | None, more: Said, verdict: Verdict
) -> None:
    """A paper contradicts itself if its formula, but not its number, agrees with the run."""
    said = claim(PEAK, 6, **{"tolerance": 0.5, "differs": DIFFERS, **more})
    (row,) = verdicts(said, prediction(PEAK, 4, printed=printed)).claims
    assert (row.verdict, row.listed) == (verdict, said["differs"] is not None)


def test_a_difference_from_a_run_that_the_papers_formula_meets() -> None:
    """If only the formula meets the difference of two runs, the paper contradicts itself."""
    said = claim(PEAK, 9, tolerance=0.5, differs=DIFFERS, against=OTHER)
    for printed, verdict in ((5.0, Verdict.PAPER_DIFFERS), (None, Verdict.UNEXPLAINED)):
        own = prediction(PEAK, 4, printed=printed)
        (row,) = verdicts(said, own, elsewhere=there(4)).claims
        assert (row.verdict, row.compared) == (verdict, 0)


def test_unlisted_difference() -> None:
    """A difference that the file does not list fails the run."""
    found = verdicts(claim(PEAK, 5))
    assert found.claims[0].note == "the file does not say why"
    assert (found.misses, found.exit_code) == ([found.claims[0]], BAD)


@pytest.mark.parametrize("differs", [DIFFERS, EXPLAINED])
def test_difference_that_is_gone(differs: Said) -> None:
    """A claim that agrees though its file says that it differs fails the run."""
    found = verdicts(claim(PEAK, 4, differs=differs), elsewhere=there(4))
    (row,) = found.claims
    assert (row.verdict, row.listed) == (Verdict.AGREES, False)
    assert row.note == "the file says that it differs"
    assert found.exit_code == BAD


@pytest.mark.parametrize("value", [4, 5])
def test_not_comparable(value: float) -> None:
    """Numbers of different quantities are not compared, equal or not."""
    differs = {**DIFFERS, "comparable": False}
    row = row_of(claim(PEAK, value, differs=differs))
    assert (row.verdict, row.listed, row.note) == (Verdict.NOT_COMPARABLE, True, "another clock")


IN_OTHER = f"another clock ({OTHER}: {PEAK} {{}}; {CHANGED})".format


@pytest.mark.parametrize(
    ("elsewhere", "verdict", "listed", "note"),
    [
        (there(5), Verdict.EXPLAINED, True, IN_OTHER("5")),
        (there(4), Verdict.UNEXPLAINED, False, f"{IN_OTHER('4')}, which does not agree either"),
        (
            *(there(None), Verdict.UNEXPLAINED, False),
            f"{IN_OTHER('undefined')}, which does not agree either",
        ),
        (
            *(there(5, 0.5), Verdict.CANNOT_TELL, True),
            f"{IN_OTHER('5')}, whose clock cannot decide it",
        ),
        ({}, Verdict.NO_RUN, True, f"there is no sound, up-to-date run of {OTHER} to explain it"),
    ],
)
def test_explanations_are_checked(
    elsewhere: Elsewhere, verdict: Verdict, listed: bool, note: str
) -> None:
    """A run explains a difference only if the same claim agrees in that run."""
    row = row_of(claim(PEAK, 5, differs=EXPLAINED), elsewhere=elsewhere)
    assert (row.verdict, row.listed, row.note) == (verdict, listed, note)


def test_chance_explains_nothing() -> None:
    """A difference that an explaining run removes only by chance leaves the verdict open."""
    said = claim(PEAK, 5, differs={**EXPLAINED, "chance": True})
    assert told(said, elsewhere=there(5)) == (Verdict.CANNOT_TELL, True)


def test_a_long_list_of_parameters_is_cut() -> None:
    """Six parameters that differ in the explaining run are named, and the others counted."""
    here = Manifest.model_validate(manifest())
    changed = {f"parameter{n}": n for n in range(8)}
    experiment = here.experiment.model_copy(update={"topology": changed})
    other = here.model_copy(update={"experiment": experiment})
    none = metrics_of(manifest(), {})
    said = _changed(Measured(here, none), Measured(other, none))
    assert said.startswith("differs in topology.parameter0 None there 0, ")
    assert said.endswith(", topology.parameter5 None there 5, 2 more")
    assert _changed(Measured(here, none), Measured(here, none)) == "differs in nothing"


def test_explanation_by_another_metric() -> None:
    """The explaining run may name another metric than the claim's."""
    found = {**there(4), (OTHER, OTHERS_PEAK): Metric(value=5, unit="packets")}
    said = claim(PEAK, 5, differs={**EXPLAINED, "metric": OTHERS_PEAK})
    assert told(said, elsewhere=found) == (Verdict.EXPLAINED, True)
    assert told(claim(PEAK, 5, differs=EXPLAINED), elsewhere=found)[1] is False


@pytest.mark.parametrize(("other", "verdict"), [(9, Verdict.EXPLAINED), (6, Verdict.UNEXPLAINED)])
def test_explanation_of_a_difference_between_runs(other: float, verdict: Verdict) -> None:
    """A run explains a difference between runs if its own difference is the claimed one."""
    base = "base@buffer=20"
    said = claim(PEAK, 6, against=base, differs=EXPLAINED)
    assert told(said, elsewhere={**there(3, run=base), **there(other)})[0] is verdict


AGAINST: list[tuple[float, float, tuple[float, float | None], Verdict]] = [
    # the claim's value, this run's error, the other run's value and error
    (1, 0, (3, 0), Verdict.AGREES),
    (-1, 0, (3, 0), Verdict.UNEXPLAINED),
    (4, 0, (3, 0), Verdict.UNEXPLAINED),
    (1, 0.5, (3, 0.4), Verdict.CANNOT_TELL),
    (1, 0, (3, None), Verdict.CANNOT_TELL),
    (2, 0.5, (3, 0.5), Verdict.CANNOT_TELL),
    (2.001, 0.5, (3, 0.5), Verdict.UNEXPLAINED),
]


@pytest.mark.parametrize(("value", "error", "other", "verdict"), AGAINST)
def test_claim_about_a_difference(
    value: float, error: float, other: tuple[float, float | None], verdict: Verdict
) -> None:
    """A claim against another run is about this run's metric minus the other's."""
    row = row_of(claim(PEAK, value, against=OTHER), error=error, elsewhere=there(*other))
    assert (row.measured, row.compared, row.verdict) == (4, 1, verdict)


def test_claim_against_a_run_with_an_error_of_its_own() -> None:
    """The errors of both runs add up: 1 is within a precision of 1, and 1.1 is not."""
    said = claim(PEAK, 1, tolerance=1, against=OTHER)
    for error, verdict in ((0.5, Verdict.AGREES), (0.6, Verdict.CANNOT_TELL)):
        assert told(said, error=0.5, elsewhere=there(3, error)) == (verdict, True)


def test_claim_against_a_run_that_is_not_there() -> None:
    """While the other run is missing, the claim's verdict is open."""
    row = row_of(claim(PEAK, 1, against=OTHER))
    assert (row.verdict, row.listed, row.compared) == (Verdict.NO_RUN, True, None)
    assert row.note == f"there is no sound, up-to-date run of {OTHER}"


@pytest.mark.parametrize(("metric", "value"), [(PEAK, None), (NONE, 1)])
def test_claim_against_an_undefined_metric(metric: str, value: float | None) -> None:
    """If one of the runs lacks the metric, a claim about their difference does not agree."""
    said = claim(metric, 1, tolerance=1e9, against=OTHER)
    found = {(OTHER, metric): Metric(value=value, unit="1")}
    assert told(said, elsewhere=found) == (Verdict.UNEXPLAINED, False)


@pytest.mark.parametrize(
    ("said", "error", "verdict"),
    [
        (finding(PEAK, 4), 0, Verdict.AS_STATED),
        (finding(PEAK, 4.4, tolerance=0.5), 0, Verdict.AS_STATED),
        (finding(PEAK, 5), 0, Verdict.CHANGED),
        (finding(PEAK, 5), 1, Verdict.CANNOT_TELL),
        (finding(NONE), 0, Verdict.AS_STATED),
        (finding(NONE, 4), 0, Verdict.CHANGED),
        (finding("goodput.third"), 0, Verdict.AS_STATED),
    ],
)
def test_finding_is_stated_or_changed(said: Said, error: float, verdict: Verdict) -> None:
    """A finding is as stated or has changed, which fails no run; a finding may be "undefined"."""
    found = verdicts(said, error=error)
    assert found.findings[0].verdict is verdict
    assert found.misses == []


def check(verdict: Verdict, *, needed: bool = False) -> FidelityRow:
    """Make a fidelity check with that outcome."""
    return FidelityRow(check="a check", value=1, bound="0", verdict=verdict, needed=needed)


MET, MISSED, UNTOLD = prediction(PEAK, 5, tolerance=1), prediction(PEAK, 9), prediction(PEAK, 5)
UNSOUND = "not to be believed: a fidelity check fails"
ONE_OF_THREE = "this run's clock decides only 1 of 3 numbers"


@pytest.mark.parametrize(
    ("said", "code", "headline"),
    [
        ([], GOOD, "every fidelity check holds"),
        ([check(Verdict.CANNOT_TELL)], GOOD, "every fidelity check holds"),
        ([check(Verdict.WARNING)], GOOD, "1 fidelity check: warning"),
        (
            [MET, check(Verdict.WARNING), check(Verdict.PASS)],
            *(GOOD, "1 prediction: pass; 1 fidelity check: warning"),
        ),
        ([MET], GOOD, "1 prediction: pass"),
        ([MET, UNTOLD], GOOD, "1 prediction: pass; 1 prediction: cannot be told"),
        ([UNTOLD], TELLS_LITTLE, "this run's clock decides only 0 of 1 numbers"),
        ([MET, UNTOLD, claim(PEAK, 5)], TELLS_LITTLE, ONE_OF_THREE),
        ([MET, UNTOLD, finding(PEAK, 5)], TELLS_LITTLE, ONE_OF_THREE),
        ([MET, UNTOLD, MISSED], BAD, "1 prediction: FAIL"),
        ([MISSED, UNTOLD, UNTOLD], BAD, "1 prediction: FAIL"),
        (
            [MISSED, MISSED, claim(PEAK, 9)],
            *(BAD, "2 predictions: FAIL; 1 claim: differs, unexplained"),
        ),
        ([MET, finding(PEAK, 9)], GOOD, "1 prediction: pass; 1 finding: not as stated"),
        ([claim(PEAK, 9, differs=DIFFERS)], GOOD, "1 claim: differs, unexplained"),
        ([MET, check(Verdict.PASS), check(Verdict.FAIL)], BAD, UNSOUND),
        ([MISSED, check(Verdict.FAIL)], BAD, UNSOUND),
        (
            [MET, check(Verdict.CANNOT_TELL, needed=True)],
            *(TELLS_LITTLE, "this run's clock is too coarse: a check"),
        ),
        ([MET, check(Verdict.PASS, needed=True)], GOOD, "1 prediction: pass"),
        ([MISSED, check(Verdict.CANNOT_TELL, needed=True)], BAD, "1 prediction: FAIL"),
    ],
)
def test_run_verdict_stands_first(said: list[Said | FidelityRow], code: int, headline: str) -> None:
    """A run is bad, tells too little, or is good; the headline begins with that."""
    found = verdicts(*said, error=1.0)
    assert (found.exit_code, found.headline) == (code, headline)


def test_exit_codes_differ() -> None:
    """A good run, a bad one, and one that leaves verdicts open have three exit codes."""
    assert (GOOD, BAD, TELLS_LITTLE) == (0, 1, 3)


SEEN: dict[str, Any] = {"measured": 0.61, "unit": "1", "verdict": Verdict.FAIL}
PREDICTED = PredictionRow(**prediction("efficiency.left", 0.65, tolerance=0.002), **SEEN)
CLAIMED = ClaimRow(**claim("efficiency.left", at_most=0.6), **SEEN)


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (PREDICTED, "efficiency.left 0.61 measured, 0.65 +- 0.002 predicted by by_hand"),
        (CLAIMED, "efficiency.left 0.61 measured, at most 0.6 in table 1"),
        (
            CLAIMED.model_copy(update={"by": "simulation", "note": "why"}),
            "efficiency.left 0.61 measured, at most 0.6 by their simulator, table 1; why",
        ),
        (
            CLAIMED.model_copy(update={"against": "zhang-fig2", "compared": 0.0123}),
            "efficiency.left 0.61 measured, +0.0123 against zhang-fig2, at most 0.6 in table 1",
        ),
        (
            FindingRow(**finding("efficiency.left", 0.6), **{**SEEN, "measured": None}),
            "efficiency.left none measured, 0.6 +- 0 seen before",
        ),
        (
            FidelityRow(check="largest frame", value=590, bound="590", verdict=Verdict.PASS),
            "largest frame: 590, bound 590",
        ),
    ],
)
def test_a_row_in_words(row: Row | FidelityRow, words: str) -> None:
    """Each kind of row names the measurement, the statement, its source and the limit's source."""
    assert " ".join(row_in_words(row).split()) == words


@pytest.mark.parametrize("verdict", Verdict)
def test_a_verdict_has_its_colour(verdict: Verdict) -> None:
    """Red marks failures and unexplained differences, green success; the line has no markup."""
    red = {Verdict.FAIL, Verdict.CONTRADICTED, Verdict.UNEXPLAINED}
    green = {Verdict.PASS, Verdict.AGREES, Verdict.AS_STATED}
    colour = "red" if verdict in red else "green" if verdict in green else "yellow"
    assert mark_verdict(verdict, "[b]") == f"[{colour}]{verdict.value:<4}[/] \\[b]"


def measured(results: Path, name: str, run: str, **said: Any) -> Path:
    """Make a measured run of an experiment in a results folder."""
    folder = write_run(results / name / run, **said)
    edit_manifest(folder, lambda m: m["experiment"].update(id=name))
    metrics = compute(Analysis(folder)).model_copy(update={"analysis": revision()})
    metrics.write(folder / "metrics.json")
    return folder


def set_peak(folder: Path, value: float) -> None:
    """Give a measured run another peak."""
    edit_json(folder / "metrics.json", lambda m: m["metrics"][PEAK].update(value=value))


def test_what_was_just_measured_is_not_read_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Verdicts are on metrics.json as written, without reading it again."""
    folder = write_run(tmp_path / "this/20000101-000030", predictions=(prediction(PEAK, 4),))
    with monkeypatch.context() as patched:
        patched.setattr(Metrics, "read", None)
        verdicts = analyse_run(folder, page=False)
    assert verdicts == judge_run(folder)


def test_runs_beside_one_another(tmp_path: Path) -> None:
    """A claim refers to the newest measured run in the same results folder."""
    said = (claim(PEAK, 1, against=OTHER),)
    folder = measured(tmp_path, "this", "20000101-000030", claims=said)
    assert judge_run(folder).claims[0].verdict is Verdict.NO_RUN
    for run, peak in (("20000101-000001", 2), ("20000102-000000", 3)):
        set_peak(measured(tmp_path, OTHER, run), peak)
    (tmp_path / OTHER / "20000103-000000").mkdir()  # interrupted
    newer = measured(tmp_path, OTHER, "20000104-000000")
    (newer / "metrics.json").write_text("{", encoding="utf-8")
    found = judge_run(folder)
    assert (found.claims[0].compared, found.claims[0].verdict) == (1, Verdict.AGREES)
    assert (found.experiment, found.run, found.spec_sha256) == (
        "this",
        "20000101-000030-000000",
        "0" * 64,
    )
    assert len(found.fidelity) == 17


@pytest.mark.parametrize(
    ("file", "change"),
    [
        ("manifest.json", lambda m: m["kernel"].update(release="6.1.0")),
        ("manifest.json", lambda m: m["experiment"].update(id="invented")),
        ("metrics.json", lambda m: m.update(analysis="0" * 16)),
        ("metrics.json", lambda m: m["fidelity"][0].update(verdict="FAIL")),
        ("metrics.json", lambda m: m.update(measured_sha256="0" * 64)),
        ("manifest.json", None),
    ],
)
def test_a_run_that_decides_is_sound_and_of_its_kind(
    tmp_path: Path, file: str, change: Callable[[Any], object] | None
) -> None:
    """A run of another kernel, experiment or code, or an unsound one, decides nothing."""
    claims = (claim(PEAK, 1, against=OTHER), claim(PEAK, 9, differs=EXPLAINED))
    folder = measured(tmp_path, "this", "20000101-000030", claims=claims)
    other = measured(tmp_path, OTHER, "20000101-000001")
    assert Verdict.NO_RUN not in {row.verdict for row in judge_run(folder).claims}
    if change:
        edit_json(other / file, change)
    else:
        (other / file).unlink()
    assert {row.verdict for row in judge_run(folder).claims} == {Verdict.NO_RUN}
    assert judge_run(folder).exit_code == GOOD


def test_nothing_is_told_of_a_run_that_is_not_sound() -> None:
    """If a fidelity check fails, it alone fails; all other verdicts are open."""
    found = verdicts(
        *(prediction(PEAK, 4), prediction(PEAK, 5), claim(PEAK, 4), claim(PEAK, 5)),
        *(finding(PEAK, 4), check(Verdict.PASS), check(Verdict.FAIL)),
    )
    assert {row.verdict for row in found.rows} == {Verdict.CANNOT_TELL}
    assert found.misses == [found.fidelity[1]]
    assert found.exit_code == BAD


def test_a_sentence_counts_once() -> None:
    """Rows of one claim count as one claim in the headline, as in the report on papers."""
    claims = (claim(PEAK, 4), claim(GOODPUT, 1.98), claim(PEAK, 4, claim="Another."))
    assert verdicts(*claims).headline == "2 claims: agrees"


def test_verdicts_document_reads_as_written(tmp_path: Path) -> None:
    """verdicts.json has its version, and reads back as it was written."""
    folder = measured(tmp_path, "this", "20000101-000030", predictions=(prediction(PEAK, 4),))
    found = judge_run(folder)
    found.write(tmp_path / VERDICTS)
    assert Verdicts.read(tmp_path / VERDICTS) == found
    assert json.loads((tmp_path / VERDICTS).read_text(encoding="utf-8"))["schema"] == 1


def test_links_are_no_runs(tmp_path: Path) -> None:
    """The link to the latest run is not a run, because its name is no time."""
    folder = measured(tmp_path, "this", "20000101-000030", claims=(claim(PEAK, 1, against=OTHER),))
    measured(tmp_path, OTHER, "latest")
    assert judge_run(folder).claims[0].compared is None


def test_run_that_is_not_measured(tmp_path: Path) -> None:
    """A run without metrics.json, or without a manifest, cannot be judged."""
    folder = write_run(tmp_path / "this/20000101-000030")
    with pytest.raises(OSError, match=r"metrics\.json"):
        judge_run(folder)
    with pytest.raises(AnalysisError, match="not a finished run"):
        judge_run(tmp_path)


def test_tampered_metric_fails(tmp_path: Path) -> None:
    """A run whose metric was changed in its folder fails its prediction."""
    folder = measured(tmp_path, "this", "20000101-000030", predictions=(prediction(PEAK, 4),))
    assert judge_run(folder).exit_code == GOOD
    set_peak(folder, 4.5)
    assert judge_run(folder).exit_code == BAD
