"""Judging a run: its metrics against the statements in its experiment's file."""

from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from capture_analysis.errors import AnalysisError

from twoway.contract.judge import Verdict, judge
from twoway.contract.metrics import METRICS, Metric, Metrics
from twoway.contract.statements import Bounds, Claim, Finding, Prediction
from twoway.contract.verdicts import ClaimRow, FindingRow, PredictionRow, Verdicts
from twoway.manifest import SEED, Described, Manifest
from twoway.measure.revision import is_current
from twoway.measure.run_folder import manifest_of
from twoway.report.comparing import parameters

RowT = TypeVar("RowT", PredictionRow, ClaimRow, FindingRow)


class Measured(NamedTuple):
    """A run that has been measured, as far as claims need it."""

    manifest: Described
    metrics: Metrics


# Finds the run of another experiment's point that a claim refers to; None without one.
Lookup = Callable[[str], Measured | None]
_ABSENT = Metric(value=None, unit="1")
_MAX_LISTED_DIFFERENCES = 6  # parameters listed for a pair of runs


def judge_statements(manifest: Manifest, metrics: Metrics, elsewhere: Lookup) -> Verdicts:
    """Judge all statements about a run."""
    here, said, found = Measured(manifest, metrics), manifest.experiment, metrics.metrics
    predictions = (_prediction(each, found.get(each.metric)) for each in said.predictions)
    findings = (_finding(each, found.get(each.metric)) for each in said.findings)
    return Verdicts(
        experiment=said.id,
        run=manifest.run,
        spec_sha256=manifest.spec_sha256,
        predictions=_believed(predictions, metrics),
        claims=_believed(judge_claims(here, elsewhere), metrics),
        findings=_believed(findings, metrics),
        fidelity=metrics.fidelity,
    )


def judge_claims(here: Measured, elsewhere: Lookup) -> tuple[ClaimRow, ...]:
    """Judge the claims about a run."""
    return tuple(_claim(each, here, elsewhere) for each in here.manifest.experiment.claims)


def _believed(rows: Iterable[RowT], metrics: Metrics) -> tuple[RowT, ...]:
    """Withdraw verdicts if the run's captures contradict each other."""
    if metrics.sound:
        return tuple(rows)
    told = {"verdict": Verdict.CANNOT_TELL, "listed": True, "note": "a fidelity check fails"}
    return tuple(row.model_copy(update=told) for row in rows)


def judge_run(folder: Path, measured: tuple[Manifest, Metrics] | None = None) -> Verdicts:
    """Judge a measured run, whose documents are read by default, with the others of its results.

    Raises: AnalysisError or OSError or ValueError if the run is not measured.
    """
    manifest, metrics = measured or (manifest_of(folder), Metrics.read(folder / METRICS))
    results = folder.resolve().parents[1]

    def elsewhere(run: str) -> Measured | None:
        same_seed = _newest(results / repeated_name(run, manifest), manifest)
        return same_seed or _newest(results / run, manifest)

    return judge_statements(manifest, metrics, cache(elsewhere))


def repeated_name(run: str, here: Manifest) -> str:
    """Name another run's repetition with this run's seed; the run itself without a seed."""
    if here.repetition is None:
        return run
    return f"{run}{',' if '@' in run else '@'}{SEED}={here.repetition}"


def _newest(folder: Path, here: Manifest) -> Measured | None:
    """Find the newest run of an experiment that can be compared with this one.

    Such a run is finished, from this experiment's files, on the same kind of kernel and clock,
    measured by the present code, and passes every fidelity check.
    """
    for run in sorted(folder.glob("[0-9]*"), reverse=True):
        try:
            manifest, metrics = manifest_of(run), Metrics.read(run / METRICS)
        except (AnalysisError, OSError, ValueError):  # partial, not measured, or of another version
            continue
        is_its = manifest.experiment.id == folder.name and is_current(metrics, manifest)
        if is_its and _environment(manifest) == _environment(here) and metrics.sound:
            return Measured(manifest, metrics)
    return None


def _environment(manifest: Manifest) -> tuple[str, str, str]:
    return manifest.backend, manifest.clock_source, manifest.kernel.release


def _prediction(said: Prediction, metric: Metric | None) -> PredictionRow:
    metric = metric or _ABSENT
    verdict, listed, note = judge(said, metric.value, metric.error), True, _limit(metric)
    if said.contradicted and verdict is Verdict.FAIL:
        verdict, note = Verdict.CONTRADICTED, said.contradicted.why
    elif said.contradicted and verdict is Verdict.PASS:
        listed, note = False, "the file says that the run contradicts it"
    return PredictionRow(
        **dict(said),
        measured=metric.value,
        unit=metric.unit,
        verdict=verdict,
        listed=listed,
        note=note,
    )


def _claim(said: Claim, here: Measured, elsewhere: Lookup) -> ClaimRow:
    metric, there = here.metrics.metrics.get(said.metric, _ABSENT), None
    compared, error, note = metric.value, metric.error, _limit(metric)
    if said.against:
        there = _metric_of(elsewhere(said.against), said.metric)
        compared = _difference(metric, there)
        error = None if there is None else _sum(metric.error, there.error)
    verdict = judge(said, compared, error)
    if said.against and there is None:
        verdict, note = Verdict.NO_RUN, f"there is no sound, up-to-date run of {said.against}"
    elif said.against and note and verdict is Verdict.FAIL and compared is None:
        verdict = Verdict.CANNOT_TELL
    listed = True
    if said.differs and not said.differs.comparable:
        verdict, note = Verdict.NOT_COMPARABLE, said.differs.why
    elif verdict is Verdict.PASS:
        verdict, listed = Verdict.AGREES, said.differs is None
        note = note if listed else "the file says that it differs"
    elif verdict is Verdict.FAIL:
        verdict, listed, note = _difference_of(said, here, elsewhere)
        own = _own_formula(said, here, elsewhere)
        if verdict is Verdict.UNEXPLAINED and listed and own:
            met = judge(own, compared, error) is Verdict.PASS
            verdict = Verdict.PAPER_DIFFERS if met else verdict
    return ClaimRow(
        **dict(said),
        measured=metric.value,
        unit=metric.unit,
        compared=compared if said.against else None,
        verdict=verdict,
        listed=listed,
        note=note,
    )


def _metric_of(run: Measured | None, name: str) -> Metric | None:
    return run and run.metrics.metrics.get(name)


def _difference_of(said: Claim, here: Measured, elsewhere: Lookup) -> tuple[Verdict, bool, str]:
    """Judge a claim that differs: the verdict, whether its file lists it, and a note."""
    differs = said.differs
    if differs is None:
        return Verdict.UNEXPLAINED, False, "the file does not say why"
    if differs.explained_by is None:
        return Verdict.UNEXPLAINED, True, differs.why
    name, other = differs.metric or said.metric, elsewhere(differs.explained_by)
    there = _metric_of(other, name)
    if other is None or there is None:
        what = f"there is no sound, up-to-date run of {differs.explained_by} to explain it"
        return Verdict.NO_RUN, True, what
    shown = "undefined" if there.value is None else f"{there.value:.4g}"
    note = f"{differs.why} ({differs.explained_by}: {name} {shown}; {_changed(here, other)})"
    value, error = there.value, there.error
    if said.against:
        base = _metric_of(elsewhere(said.against), said.metric)
        value = _difference(there, base)
        error = None if base is None else _sum(error, base.error)
    verdict = judge(said, value, error)
    if verdict is Verdict.PASS:
        return Verdict.CANNOT_TELL if differs.chance else Verdict.EXPLAINED, True, note
    if verdict is Verdict.CANNOT_TELL:
        return verdict, True, f"{note}, whose clock cannot decide it"
    return Verdict.UNEXPLAINED, False, f"{note}, which does not agree either"


def _own_formula(said: Claim, here: Measured, elsewhere: Lookup) -> Bounds | None:
    """Return the result of the paper's formula if its text has a number; None without one."""
    if (said.form, said.by) != ("digits", "paper"):
        return None
    value = _printed(here, said.metric)
    if said.against:
        there = elsewhere(said.against)
        other = there and _printed(there, said.metric)
        value = None if value is None or other is None else value - other
    return None if value is None else Bounds(value=value, tolerance=said.tolerance)


def _printed(run: Measured, metric: str) -> float | None:
    """Compute the paper's own formula for a metric of a run."""
    said = (each for each in run.manifest.experiment.predictions if each.metric == metric)
    return next((each.printed for each in said if each.printed is not None), None)


def _changed(here: Measured, there: Measured) -> str:
    """List the parameters in which one run differs from another, with both values."""
    changed = parameters([here.manifest, there.manifest])
    words = [
        f"{name.removeprefix('experiment.')} {_value(row.values[0])} there {_value(row.values[1])}"
        for name, row in changed.items()
    ]
    more = (
        [f"{len(words) - _MAX_LISTED_DIFFERENCES} more"]
        if len(words) > _MAX_LISTED_DIFFERENCES
        else []
    )
    return (
        f"differs in {', '.join(words[:_MAX_LISTED_DIFFERENCES] + more)}"
        if words
        else "differs in nothing"
    )


def _value(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _finding(said: Finding, metric: Metric | None) -> FindingRow:
    metric = metric or _ABSENT
    same = (
        Verdict.PASS
        if said.value is None and metric.value is None
        else judge(said, metric.value, metric.error)
    )
    words = {Verdict.PASS: Verdict.AS_STATED, Verdict.FAIL: Verdict.CHANGED}
    return FindingRow(
        **dict(said),
        measured=metric.value,
        unit=metric.unit,
        verdict=words.get(same, same),
        note=_limit(metric),
    )


def _difference(here: Metric, there: Metric | None) -> float | None:
    if there is None or here.value is None or there.value is None:
        return None
    return here.value - there.value


def _sum(one: float | None, two: float | None) -> float | None:
    return None if one is None or two is None else one + two


def _limit(metric: Metric) -> str | None:
    if metric is _ABSENT:
        return "no such metric"
    if metric.error is None:
        return "not measurable on this run's clock"
    if metric.error:
        return f"this run's clock may change it by {metric.error:.2g}"
    return None
