"""The answer of a sweep: its metrics at each point, over the repetitions, in a table and words."""

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from twoway.contract.metrics import Metric
from twoway.contract.statements import label
from twoway.manifest import SEED
from twoway.report.curves import axis_names, is_logarithmic, longest_axis, position
from twoway.report.flow_groups import metrics_of
from twoway.report.repetitions import group_runs
from twoway.report.results import Experiment, Result
from twoway.report.statistics import Spread, difference, spread

# The most lines of a figure that are described in words.
_MOST_SENTENCES = 4
# The most rows in a terminal.
MOST_ROWS = 20


# Words of a row, and the spread of each metric.
_Row = tuple[tuple[str, ...], tuple[Spread | None, ...]]


class Answer(NamedTuple):
    """A table of a sweep's points, one row each, over their repetitions.

    Attributes:
        axes: the axes but that of seeds: the first columns.
        units: units of the metrics, by name: the other columns.
        rows: values of the axes in words, with the spread of each metric; None if undefined in all
            runs.
        differences: rows with two values of an axis, as "B - A", and the spread of each metric's
            difference, paired by seed.
        sentences: what the table says.
        doubts: what a reader must know of the numbers: draws in two groups, undefined ones.
        repeated: True if points are repeated with other seeds.
    """

    axes: tuple[str, ...]
    units: dict[str, str]
    rows: tuple[_Row, ...]
    differences: tuple[_Row, ...]
    sentences: tuple[str, ...]
    doubts: tuple[str, ...]
    repeated: bool


def answer_of(experiment: Experiment, asked: Sequence[str]) -> Answer:
    """Answer what a sweep is asked for.

    Args:
        experiment: the sweep's runs, with their derived metrics.
        asked: metrics such as share or goodput.left, and families such as goodput.
    """
    metrics = [m for wanted in asked for m in _found(experiment, wanted)]
    units = {name: metric.unit for name, metric in metrics}
    axes = tuple(axis for axis in experiment.axes if not (experiment.repeated and axis == SEED))
    points = list(group_runs(experiment.results).values())
    rows = tuple(
        (
            tuple(label(runs[0].point[axis]) for axis in axes),
            tuple(spread(_values(runs, name)) for name in units),
        )
        for runs in points
    )
    return Answer(
        axes,
        units,
        rows,
        tuple(_differences(experiment, points, axes, [*units])) if experiment.repeated else (),
        tuple(_sentences(experiment, points, units)),
        tuple(_doubts(points, axes, units)),
        experiment.repeated,
    )


def answer_tables(answer: Answer) -> list[list[list[str]]]:
    """Format the table, and that of differences if there is one, each after a row of titles."""
    tables = (("", answer.rows), (" difference", answer.differences))
    return [_lines(answer, of, rows) for of, rows in tables if rows]


def _lines(answer: Answer, of: str, rows: Sequence[_Row]) -> list[list[str]]:
    titles = [*answer.axes]
    for name, unit in answer.units.items():
        titles.append(f"{name}{of}" + (f", {unit}" if unit != "1" else ""))
        if answer.repeated:
            titles += ["95 %", "seeds"]
    lines = [titles]
    for values, spreads in rows:
        line = [*values]
        for each in spreads:
            line.append(f"{each.mean:.4g}" if each else "-")
            if answer.repeated:
                known = each and not math.isnan(each.margin)
                line.append(f"± {each.margin:.2g}" if each and known else "-")
                line.append(str(each.defined) if each else "0")
        lines.append(line)
    return lines


def _found(experiment: Experiment, wanted: str) -> Iterator[tuple[str, Metric]]:
    """List the metrics of a name or family in any of the runs."""
    seen = set()
    for result in experiment.results:
        for name, metric in metrics_of(result.metrics, wanted).items():
            if name not in seen:
                seen.add(name)
                yield name, metric


def _values(runs: Sequence[Result], name: str) -> list[float | None]:
    found = (each.metrics.metrics.get(name) for each in runs)
    return [metric.value if metric else None for metric in found]


def _differences(
    experiment: Experiment, points: list[list[Result]], axes: Sequence[str], names: Sequence[str]
) -> Iterator[_Row]:
    """Compare values of an axis with its first one: those of an axis of words, or of two values."""
    where = {
        tuple(label(runs[0].point[axis]) for axis in axes): {run.point[SEED]: run for run in runs}
        for runs in points
    }
    for at, axis in enumerate(axes):
        values = list(dict.fromkeys(place[at] for place in where))
        if len(values) != 2 and not axis_names(experiment, axis):
            continue
        for place, runs in where.items():
            first = where.get((*place[:at], values[0], *place[at + 1 :]))
            if place[at] == values[0] or not first:
                continue
            seeds = [seed for seed in runs if seed in first]
            words = (*place[:at], f"{place[at]} - {values[0]}", *place[at + 1 :])
            pairs = ([_values([of[s] for s in seeds], n) for of in (runs, first)] for n in names)
            yield words, tuple(difference(*pair) for pair in pairs)


def _sentences(
    experiment: Experiment, points: list[list[Result]], units: dict[str, str]
) -> Iterator[str]:
    """Describe how each metric varies over the longest axis, for each value of the others."""
    axis = longest_axis(experiment)
    if axis == SEED:
        yield from _alone(points, units)
        return
    lines: dict[tuple[str, str], list[tuple[float, str, float]]] = {}
    for runs in points:
        others = [
            f"{name} {label(value)}"
            for name, value in runs[0].point.items()
            if name not in (axis, SEED) and len(experiment.axes[name]) > 1
        ]
        for name in units:
            if found := spread(_values(runs, name)):
                at = (position(experiment, axis, runs[0]), label(runs[0].point[axis]), found.mean)
                lines.setdefault((name, ", ".join(others)), []).append(at)
    logarithmic, named = is_logarithmic(experiment, axis), bool(axis_names(experiment, axis))
    for (name, where), line in list(lines.items())[:_MOST_SENTENCES]:
        if len(line) > 1:
            said = _course(axis, sorted(line), units[name], logarithmic=logarithmic, named=named)
            seeds = f"; means of {len(points[0])} seeds" if experiment.repeated else ""
            yield f"{name}{f' ({where})' if where else ''} {said}{seeds}."
    if len(lines) > _MOST_SENTENCES:
        yield f"{len(lines) - _MOST_SENTENCES} more lines are in the table."


def _alone(points: list[list[Result]], units: dict[str, str]) -> Iterator[str]:
    for runs in points:
        for name, unit in list(units.items())[:_MOST_SENTENCES]:
            found = spread(_values(runs, name))
            if found and not math.isnan(found.margin):
                yield (
                    f"{name} is {_number(found.mean, unit)} in the mean of {found.defined} seeds, "
                    f"{_number(found.mean - found.margin, unit)} to "
                    f"{_number(found.mean + found.margin, unit)} with 95 %."
                )


def _course(
    axis: str, line: list[tuple[float, str, float]], unit: str, *, logarithmic: bool, named: bool
) -> str:
    """Write how a metric varies along an axis."""
    values = [value for _, _, value in line]
    least, most = min(line, key=lambda at: at[2]), max(line, key=lambda at: at[2])
    if least[2] == most[2]:
        return f"is {_number(most[2], unit)} at each {axis}"
    first, last = line[0], line[-1]
    if not named and {first, last} == {least, most}:
        verb = "rises" if last is most else "falls"
        said = (
            f"{verb} from {_number(first[2], unit)} at {axis} {first[1]} "
            f"to {_number(last[2], unit)} at {last[1]}"
        )
        even = _even(line, logarithmic=logarithmic)
        shares = unit == "1" and min(values) >= 0 and max(values) <= 1
        return f"{said}; 50 % at about {even:.3g}" if shares and even is not None else said
    return (
        f"is {_number(most[2], unit)} at most, at {axis} {most[1]}, "
        f"and {_number(least[2], unit)} at least, at {least[1]}"
    )


def _even(line: list[tuple[float, str, float]], *, logarithmic: bool) -> float | None:
    """Return where a line passes 0.5, between its points; None unless it does so once."""
    passed = []
    for (x, _, y), (next_x, _, next_y) in pairwise(line):
        if (y - 0.5) * (next_y - 0.5) < 0:
            part = (0.5 - y) / (next_y - y)
            if logarithmic:
                passed.append(x * (next_x / x) ** part)
            else:
                passed.append(x + part * (next_x - x))
    return passed[0] if len(passed) == 1 else None


def _number(value: float, unit: str) -> str:
    if unit == "1" and 0 <= value <= 1:
        return f"{value * 100:.3g} %"
    return f"{value:.4g}" + (f" {unit}" if unit != "1" else "")


def _doubts(
    points: list[list[Result]], axes: Sequence[str], units: dict[str, str]
) -> Iterator[str]:
    """List points whose draws fall in two groups, and those with undefined metrics."""
    for runs in points:
        where = ", ".join(f"{axis} {label(runs[0].point[axis])}" for axis in axes) or "all seeds"
        for name, unit in units.items():
            values = _values(runs, name)
            found = spread(values)
            if found and found.groups:
                low, high = (_number(each, unit) for each in found.groups)
                yield (
                    f"{name} at {where}: the draws fall in two groups, near {low} and near {high}; "
                    "mean and median describe none of them."
                )
            if undefined := sum(each is None for each in values):
                yield f"{name} at {where}: undefined in {undefined} of {len(values)} runs."
