"""Checks of an experiment's statements on metrics.

No point is left out silently: a statement that leaves points out must give a reason, and so must a
file without a statement for a point.
"""

from collections.abc import Iterator, Sequence

from twoway.contract.statements import label
from twoway.description.experiment import Experiment
from twoway.description.matrix import (
    AxisValues,
    drop_axis,
    matches,
    point_name,
    points,
    sorted_name,
)
from twoway.description.statements import At, Claimed, DiffersAt, Found, Known, Predicted, Statement


def statement_problems(experiment: Experiment) -> list[str]:
    """List contradictions in predictions, claims and findings, each after its field."""
    problems = [
        f"{kind}.{index}{problem}"
        for kind, statements in experiment.statements.items()
        for index, statement in enumerate(statements)
        for problem in _problems(statement, experiment)
    ]
    for index, unclaimed in enumerate(experiment.unclaimed):
        problems += [f"unclaimed.{index}.at{p}" for p in _at_problems(unclaimed.at, experiment)]
    return problems or list(_silent_points(experiment))


def _problems(statement: Statement, experiment: Experiment) -> Iterator[str]:
    at = list(_at_problems(statement.at, experiment))
    yield from (f".at{problem}" for problem in at)
    if at:
        return
    left_out = [p for p in points(experiment.matrix) if not matches(statement.at, p)]
    if left_out and not statement.elsewhere:
        yield f".elsewhere: give the reason why `at` leaves out {_some(left_out)}"
    if statement.elsewhere and not left_out:
        yield ".elsewhere: `at` leaves no point out"
    if isinstance(statement, Predicted):
        yield from _prediction_problems(statement, experiment)
    elif isinstance(statement, Claimed):
        yield from _claim_problems(statement, experiment)
    elif isinstance(statement, Found):
        yield from _finding_problems(statement, experiment)


def _at_problems(at: At, experiment: Experiment) -> Iterator[str]:
    for axis, wanted in at.items():
        if axis not in experiment.matrix:
            yield f': no axis "{axis}" in matrix'
            continue
        known = [label(value) for value in experiment.matrix[axis].to]
        for value in wanted if isinstance(wanted, list) else [wanted]:
            if label(value) not in known:
                yield f".{axis}: {label(value)} is not one of its values: {', '.join(known)}"


def _prediction_problems(prediction: Predicted, experiment: Experiment) -> Iterator[str]:
    given = [n for n in ("value", "at_least", "at_most") if getattr(prediction, n) is not None]
    if len(given) > 1:
        yield f": one of value, at_least, at_most is the theory's, got {', '.join(given)}"
    bounded = prediction.at_least is not None or prediction.at_most is not None
    if (prediction.tolerance is None) != bounded:
        yield f".tolerance: goes with a value, got {prediction.tolerance}"
    yield from _count_problems(prediction, "tolerance")
    if prediction.theory is None and experiment.theory is None:
        yield ".theory: required, for the file names no theory"
    yield from _known_problems("contradicted", prediction.contradicted, prediction, experiment)


def _count_problems(said: Statement, field: str) -> Iterator[str]:
    """Refuse a list that does not have one value for each metric."""
    given = getattr(said, field)
    if isinstance(given, list) and len(given) != len(said.metrics):
        yield f".{field}: {len(given)} values for {len(said.metrics)} metrics"


def _claim_problems(claim: Claimed, experiment: Experiment) -> Iterator[str]:
    low, high = claim.at_least, claim.at_most
    bounded = low is not None or high is not None
    if bounded == (claim.value is not None):
        given = "both" if bounded else "neither"
        yield f": value, or at_least or at_most, must give the paper's number; got {given}"
    if (claim.precision is None) != (claim.value is None):
        yield f".precision: goes with a value, got {claim.precision}"
    counts = [*_count_problems(claim, "value"), *_count_problems(claim, "precision")]
    yield from counts
    for metric in [] if counts else claim.metrics:
        value = claim.value_for(metric, claim.value)
        precision = claim.value_for(metric, claim.precision)
        size = abs(value) if isinstance(value, float) else 0
        if size and precision and precision >= size:
            yield f".precision: must be below the value's size ({size:g}), got {precision:g}"
            break
    if low is not None and isinstance(high, float) and low > high:
        yield f".at_least: must not be above at_most ({high:g}), got {low:g}"
    if claim.where is None and experiment.source is None:
        yield ".where: required, for the file names no source"
    if claim.has_formula and experiment.theory is None:
        yield ': "printed", but the file names no theory'
    yield from _form_problems(claim)
    yield from _known_problems("differs", claim.differs, claim, experiment)
    for index, differs in enumerate(claim.differs):
        yield from (f".differs.{index}{problem}" for problem in _differs_problems(differs))


def _form_problems(claim: Claimed) -> Iterator[str]:
    if claim.reading is None and (claim.print != "digits" or claim.value is None):
        yield ".reading: required unless the value is in digits"
    if claim.value not in (None, "printed") and claim.print is None:
        yield ".print: required beside a number: digits, formula or words"
    if claim.has_formula and claim.print not in (None, "formula"):
        yield f".print: the paper's formula gives this value or bound, got {claim.print}"


def _differs_problems(differs: DiffersAt) -> Iterator[str]:
    if differs.not_comparable and differs.explained_by:
        yield ".explained_by: not allowed for metrics that are not comparable"
    if bool(differs.removes) != bool(differs.explained_by):
        yield ".removes: goes with `explained_by`; give both or none"
    if "experiment.profile" in differs.removes:
        yield ".removes: a whole profile is no reason; take a run with this one"
    if not differs.chance and any(each.endswith(".start_s") for each in differs.removes):
        yield ".chance: must be true, because another start explains nothing"
    if differs.chance and not differs.explained_by:
        yield ".chance: needs `explained_by`, the run in which the claim holds"


def _known_problems(
    field: str, listed: Sequence[Known], said: Statement, experiment: Experiment
) -> Iterator[str]:
    """List problems of the known exceptions to statements."""
    for index, known in enumerate(listed):
        where = f".{field}.{index}"
        at = [f"{where}.at{problem}" for problem in _at_problems(known.at, experiment)]
        yield from at
        both = (said.at, known.at)
        if not at and not any(all(matches(a, p) for a in both) for p in points(experiment.matrix)):
            yield f"{where}.at: no point of the statement's `at`"
        if unknown := set(known.metrics or []) - set(said.metrics):
            yield f"{where}.metrics: not the statement's: {', '.join(sorted(unknown))}"


def _finding_problems(finding: Found, experiment: Experiment) -> Iterator[str]:
    here = [p for p in points(experiment.matrix) if matches(finding.at, p)]
    if finding.over is not None and (problem := _over_problem(finding, experiment)):
        yield problem
        return
    if isinstance(finding.measured, dict):
        names = [point_name(drop_axis(finding.over, p) if finding.over else p) for p in here]
        known = {sorted_name(name): name for name in names}
        for name in finding.measured.keys() - known.keys():
            yield f".measured.{name}: no such point, or not one of `at`"
        if missing := sorted(known[name] for name in known.keys() - finding.measured.keys()):
            yield f".measured: no result for {', '.join(missing)}"
            return
    for point in here:
        got = finding.measured_at(point, experiment.matrix)
        if isinstance(got, list) and len(got) != len(finding.metrics):
            yield f".measured: {len(got)} values for {len(finding.metrics)} metrics"
            return


def _over_problem(finding: Found, experiment: Experiment) -> str | None:
    """Find a contradiction in a finding over an axis, which must have all points of that axis."""
    axis = experiment.matrix.get(str(finding.over))
    if axis is None:
        return f'.over: no axis "{finding.over}" in matrix'
    if finding.over in finding.at:
        return f".over: has all values of {finding.over}, which `at` leaves out"
    if not isinstance(finding.measured, dict):
        return ".measured: with `over`, results by the names of points without that axis"
    for name, drawn in finding.measured.items():
        count = len(drawn) if isinstance(drawn, list) else 1
        if count != len(axis.to) or not isinstance(drawn, list):
            return f".measured.{name}: {count} results for {len(axis.to)} values of {finding.over}"
    return None


def _silent_points(experiment: Experiment) -> Iterator[str]:
    """Find the points without a statement and without a reason."""
    statements = [each for kind in experiment.statements.values() for each in kind]
    if not statements:
        return
    told = [statement.at for statement in statements] + [each.at for each in experiment.unclaimed]
    silent = [p for p in points(experiment.matrix) if not any(matches(at, p) for at in told)]
    if silent:
        yield f"unclaimed: {_some(silent)} has no statement, and no reason"


def _some(found: list[AxisValues]) -> str:
    names = [point_name(point) for point in found[:3]]
    more = len(found) - len(names)
    return ", ".join(names) + (f" and {more} more" if more else "")
