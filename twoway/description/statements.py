"""The statements in an experiment's file on its metrics: predictions, claims and findings.

All three name metrics and points. Predictions are this project's and exist before the run; code
computes their numbers. Claims are the paper's. Findings were written after looking.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from typing import Annotated, Any, Literal, TypeVar, cast

from pydantic import BeforeValidator, Field

from twoway.contract.model import Model, Name, NonNegative, text
from twoway.contract.statements import (
    Claim,
    Contradicted,
    Differs,
    Finding,
    Form,
    Prediction,
    label,
)
from twoway.description.matrix import (
    AxisValues,
    Label,
    Matrix,
    drop_axis,
    matches,
    point_name,
    sorted_name,
)

At = dict[Name, Label | list[Label]]
# A run to compare with: an experiment's id, with "@" and the point's name for a sweep.
Run = Annotated[
    str,
    text(
        r"^[A-Za-z0-9][A-Za-z0-9_.-]*(@[A-Za-z0-9_.,=+-]+)?$",
        "an experiment's id, or one of its points as `twoway list` names them (ID@POINT)",
    ),
]
# The path of a parameter in a run's description, as profile.directions.forward.delay_ms.
Parameter = Annotated[
    str,
    text(
        r"^(experiment|profile)(\.[A-Za-z0-9_-]+)+$",
        "a parameter's path, as profile.directions.forward.delay_ms",
    ),
]
Percent = Annotated[str, text(r"^[0-9]+(\.[0-9]+)? ?%$", "a number and %", most=20)]
Sentence = Annotated[str, text(r"\S", "more than spaces")]
# A metric's value; None if it is undefined.
Number = float | None
# The values of a statement's metrics: the same for all, or one for each.
Result = Number | list[Number]
# The same, or either by the name of its point.
Table = Result | dict[str, Result | list[Result]]
# Where the precision of most numbers in print comes from.
_LAST_DIGIT = "half of the last digit"
# A theory's values by the metric's name: the prediction, and the paper's printed form.
Computed = tuple[Mapping[str, float], Mapping[str, float]]


class Statement(Model):
    """A statement on one metric, or the same statement on several, at some points."""

    metric: str | Annotated[list[str], Field(min_length=1)] = Field(
        description="a name from metrics.json, or several with the same statement"
    )
    at: At = Field(
        default={}, description="the points of the statement, values by axis; by default all"
    )
    elsewhere: Sentence | None = Field(
        default=None, description="the reason for leaving out the other points"
    )

    @property
    def metrics(self) -> list[str]:
        """The metrics of the statement."""
        return [self.metric] if isinstance(self.metric, str) else self.metric

    def value_for(self, metric: str, given: Any) -> Any:
        """Return a field's value for one metric, of one for all or one for each."""
        return given[self.metrics.index(metric)] if isinstance(given, list) else given


StatementT = TypeVar("StatementT", bound=Statement)


class Known(Model):
    """Runs that are known to differ from a statement, and the known reason."""

    why: Sentence = Field(description="the reason, as far as it is known")
    metrics: list[str] | None = Field(
        default=None, description="the metrics of the statement that differ; all by default"
    )
    at: At = Field(
        default={}, description="the points that differ; by default all points of the statement"
    )

    def covers(self, metric: str, point: AxisValues) -> bool:
        """Tell whether the exception covers a metric at a point."""
        return (self.metrics is None or metric in self.metrics) and matches(self.at, point)


KnownT = TypeVar("KnownT", bound=Known)


def _known(listed: Sequence[KnownT], metric: str, point: AxisValues) -> KnownT | None:
    """Return the first exception that covers a metric at a point; None without one."""
    return next((each for each in listed if each.covers(metric, point)), None)


class ContradictedAt(Known):
    """A recorded case of runs that contradict a prediction."""

    since: date = Field(description="the day of the first such run, as 2026-11-24")

    def as_record(self) -> Contradicted:
        """Return the form that runs record."""
        return Contradicted(since=self.since, why=_line(self.why))


class Predicted(Statement):
    """A prediction of this project's theory; a miss that is not on record fails the run."""

    value: Literal["theory"] | None = Field(
        default=None,
        description="the theory's number, for each point: what a prediction without a bound has",
    )
    at_least: Literal["theory"] | None = Field(
        default=None, description="`theory`: its number is a lower bound"
    )
    at_most: Literal["theory"] | None = Field(
        default=None, description="`theory`: its number is an upper bound"
    )
    tolerance: NonNegative | Percent | list[NonNegative | Percent] | None = Field(
        default=None,
        description="largest difference from the theory's number that passes, or one for each "
        "metric: in its unit, or `0.5 %` of it",
    )
    theory: Name | None = Field(
        default=None, description="the theory, if not the experiment's `theory`"
    )
    why: Sentence = Field(description="the source of value and tolerance")
    contradicted: list[ContradictedAt] = Field(
        default=[], description="runs that contradict it: on record, and no failure"
    )

    def make_prediction(
        self, metric: str, point: AxisValues, theory: str, computed: Computed, *, of_testbed: bool
    ) -> Prediction:
        """Return the prediction of one metric at one point."""
        numbers, printed = computed
        known = _known(self.contradicted, metric, point)
        kind = "at_least" if self.at_least else "at_most" if self.at_most else "value"
        return Prediction(
            metric=metric,
            theory=theory,
            tolerance=_absolute(self.value_for(metric, self.tolerance), numbers[metric]),
            why=self.why,
            of_testbed=of_testbed,
            printed=printed.get(metric),
            contradicted=None if known is None else known.as_record(),
            **{kind: numbers[metric]},
        )


def _absolute(tolerance: float | str | None, value: float) -> float | None:
    """Return a tolerance in the unit of its value."""
    if isinstance(tolerance, str):
        return abs(value) * float(tolerance.rstrip("% ")) / 100
    return tolerance


def _line(text: str) -> str:
    """Write a text as one line."""
    return " ".join(text.split())


class DiffersAt(Known):
    """A known difference from a claim, with its reason."""

    explained_by: Run | None = Field(
        default=None,
        description="an experiment or point to which the reason does not apply, and "
        "where the claim "
        "agrees; if missing, the difference is unexplained",
    )
    removes: list[Parameter] = Field(
        default=[],
        description="the only parameters in which that run differs from this one, by "
        "their paths as "
        "`twoway compare` prints them",
    )
    chance: bool = Field(
        default=False,
        description="the removed parameters are random, as a start time is: the claim "
        "holds in some "
        "runs only, so it cannot be decided",
    )
    metric_there: str | None = Field(
        default=None, description="the name of the claim's metric in that run, if different"
    )
    not_comparable: bool = Field(
        default=False, description="the paper's number and the metric measure different quantities"
    )

    def as_record(self) -> Differs:
        """Return the form that runs record."""
        return Differs(
            why=_line(self.why),
            explained_by=self.explained_by,
            removes=tuple(self.removes),
            chance=self.chance,
            metric=self.metric_there,
            comparable=not self.not_comparable,
        )


class Claimed(Statement):
    """A claim that the paper prints; judged by the precision of the print alone."""

    claim: Sentence = Field(
        description="the paper's claim in our words; the same claim counts once"
    )
    where: Sentence | None = Field(
        default=None, description="section, figure or table; by default that of `source`"
    )
    by: Literal["paper", "simulation"] = Field(
        default="paper", description="`simulation`: a number of the authors' own simulator"
    )
    value: float | list[float] | Literal["printed"] | None = Field(
        default=None,
        description="the number in print, or one for each metric, in their unit; `printed`: the "
        "paper's own formula, for our parameters",
    )
    precision: NonNegative | list[NonNegative] | None = Field(
        default=None,
        description="half of the value's last digit, or the accuracy of reading a figure; or one "
        "for each metric",
    )
    at_least: float | None = Field(default=None, description="a lower bound, in place of a value")
    at_most: float | Literal["printed"] | None = Field(
        default=None,
        description="an upper bound, in place of a value; `printed`: the paper's own formula",
    )
    print: Form | None = Field(
        default=None,
        description="the form in print, required beside a number: `digits` (or a number spelled "
        "out), `formula` or `words` whose number is ours; a bound has words by default",
    )
    against: Run | None = Field(
        default=None,
        description="an experiment or point: the claim is about the metric here minus the metric "
        "there; axes that are left out, or have no value, have this point's values",
    )
    reading: Sentence | None = Field(
        default=None,
        description="the source of the precision or the bound; by default, of a value in digits, "
        f"`{_LAST_DIGIT}`",
    )
    differs: list[DiffersAt] = Field(
        default=[], description="runs that are known to differ from the claim"
    )

    @property
    def has_formula(self) -> bool:
        """True if the paper's own formula gives the value or bound."""
        return "printed" in (self.value, self.at_most)

    def make_claim(
        self, metric: str, point: AxisValues, printed: Mapping[str, float], where: str
    ) -> Claim:
        """Return the claim about one metric at one point, made there unless it says otherwise."""
        known = _known(self.differs, metric, point)
        value: float | Literal["printed"] | None = self.value_for(metric, self.value)
        return Claim(
            claim=_line(self.claim),
            where=self.where or where,
            by=self.by,
            metric=metric,
            value=printed[metric] if value == "printed" else value,
            formula=self.has_formula,
            print=self.print,
            tolerance=self.value_for(metric, self.precision),
            at_least=self.at_least,
            at_most=printed[metric] if self.at_most == "printed" else self.at_most,
            against=self.against,
            why=self.reading or _LAST_DIGIT,
            differs=None if known is None else known.as_record(),
        )


def _by_sorted_name(given: Any) -> Any:
    """Give each result of a table the name of its point: `a=1: {b: {2: 3}}` is `a=1,b=2: 3`."""
    if not isinstance(given, dict):
        return given
    found = list(_in_table(given))
    if len(by_name := dict(found)) < len(found):
        (twice, _), *_ = Counter(name for name, _ in found).most_common(1)
        raise ValueError(f"{twice} is given twice")
    return by_name


def _in_table(given: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(given, dict):
        last = name.rpartition(",")[2]
        joined = f"{name}," if "=" in last else f"{name}=" if name else ""
        for key, inner in given.items():
            yield from _in_table(inner, f"{joined}{label(key)}")
    else:
        yield sorted_name(name), given


class Found(Statement):
    """A result of runs, written after looking, for every point of the sweep."""

    finding: Sentence = Field(description="the finding, as a sentence")
    measured: Annotated[
        Table, BeforeValidator(_by_sorted_name, json_schema_input_type=Table | dict[str, Any])
    ] = Field(
        description="the result: a number, one for each metric, or either by the point's name; or "
        "a table, in which an axis is above its values: `a=1: {b: {2: 7, 3: 8}}` is `a=1,b=2: 7` "
        "and `a=1,b=3: 8`",
    )
    over: Name | None = Field(
        default=None,
        description="an axis of seeds or starts: names in `measured` leave it out, and have a list "
        "of results, one for each of its values; the report gives their spread",
    )
    tolerance: NonNegative = Field(description="half of the last digit given")

    def measured_at(self, point: AxisValues, matrix: Matrix) -> Result:
        """Return the result at a point; None if it is undefined or missing."""
        if not isinstance(self.measured, dict):
            return self.measured
        if self.over is None:
            return cast("Result", self.measured.get(sorted_name(point_name(point))))
        drawn = self.measured[sorted_name(point_name(drop_axis(self.over, point)))]
        assert isinstance(drawn, list)
        return drawn[[*matrix[self.over].to].index(point[self.over])]

    def make_finding(self, metric: str, point: AxisValues, matrix: Matrix) -> Finding:
        """Return the finding on one metric at one point."""
        found = self.measured_at(point, matrix)
        return Finding(
            finding=_line(self.finding),
            metric=metric,
            value=self.value_for(metric, found),
            tolerance=self.tolerance,
            why="measured before; half of the last digit given",
        )


class Unclaimed(Model):
    """Points of a sweep without any statement."""

    at: At = Field(description="the points, values by axis")
    why: Sentence = Field(description="why they are run")


def said_at(
    point: AxisValues, statements: Iterable[StatementT]
) -> Iterable[tuple[int, StatementT, str]]:
    """List the statements on a point: index, statement, metric."""
    for index, statement in enumerate(statements):
        if matches(statement.at, point):
            yield from ((index, statement, metric) for metric in statement.metrics)


def full_run(run: str, name: str, point: AxisValues) -> str:
    """Complete the name of a run with this point's values of the axes that it leaves out.

    Only a point of the same experiment may leave axes out; one of another may leave out a value, as
    "other@window" does.
    """
    experiment, at, given = run.partition("@")
    if experiment != name or not point:
        words = (f"{w}={label(point[w])}" if w in point else w for w in given.split(","))
        return f"{experiment}{at}{','.join(words)}"
    axes = [each.partition("=") for each in given.split(",") if each]
    if not {axis for axis, _, _ in axes} <= point.keys():
        return run  # which no point is
    there = {axis: value for axis, equals, value in axes if equals}
    filled = {axis: there.get(axis, label(value)) for axis, value in point.items()}
    return f"{name}@{','.join(f'{axis}={value}' for axis, value in filled.items())}"
