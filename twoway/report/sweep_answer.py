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


class _At(NamedTuple):
    """A metric at a value of an axis: the value's place on the axis, its words, draws by seed."""

    position: float
    words: str
    spread: Spread
    draws: dict[int, float | None]


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
    """Answer what a sweep, with its derived metrics, is asked for.

    These are metrics, such as share or goodput.left, and families, such as goodput.
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
    if axis == SEED or (len(points) == 1 and experiment.repeated):
        yield from _alone(points, units)
        return
    lines: dict[tuple[str, str], list[_At]] = {}
    for runs in points:
        others = experiment.place(runs[0], axis)
        seeds = [run.point.get(SEED, 1) for run in runs]
        for name in units:
            if found := spread(_values(runs, name)):
                place = position(experiment, axis, runs[0])
                draws = dict(zip(seeds, _values(runs, name), strict=True))
                at = _At(place, label(runs[0].point[axis]), found, draws)
                lines.setdefault((name, others), []).append(at)
    logarithmic, named = is_logarithmic(experiment, axis), bool(axis_names(experiment, axis))
    for (name, where), line in list(lines.items())[:_MOST_SENTENCES]:
        if len(line) > 1:
            unit = _unit(name, units[name], [at.spread.mean for at in line])
            line.sort(key=lambda at: at.position)
            said = _course(axis, line, unit, logarithmic=logarithmic, named=named)
            numbers = sorted({at.spread.defined for at in line})
            of = f"; means of {' to '.join(map(str, numbers[:: len(numbers) - 1 or 1]))} seeds"
            yield f"{name}{f' ({where})' if where else ''} {said}{of * experiment.repeated}."
    if len(lines) > _MOST_SENTENCES:
        yield f"{len(lines) - _MOST_SENTENCES} more lines are in the table."


def _alone(points: list[list[Result]], units: dict[str, str]) -> Iterator[str]:
    for runs in points:
        for name, unit in list(units.items())[:_MOST_SENTENCES]:
            found = spread(_values(runs, name))
            if found and not math.isnan(found.margin):
                ends = (found.mean - found.margin, found.mean + found.margin)
                words = _unit(name, unit, [found.mean, *ends])
                low, mean, high = (_number(each, words) for each in (ends[0], found.mean, ends[1]))
                yield (
                    f"{name} is {mean}, the mean of {found.defined} seeds; its 95 % interval goes "
                    f"from {low} to {high}."
                )


def _course(axis: str, line: list[_At], unit: str, *, logarithmic: bool, named: bool) -> str:
    """Write how a metric varies along an axis."""
    first, last = line[0], line[-1]
    ends_first = [first, last, *line[1:-1]]  # of equal values, that at an end
    least = min(ends_first, key=lambda at: at.spread.mean)
    most = max(ends_first, key=lambda at: at.spread.mean)
    low, high = (_number(at.spread.mean, unit) for at in (least, most))
    if low == high:
        return f"is {high} at each {axis}"
    if not named and {first.words, last.words} == {least.words, most.words}:
        verb, ends = ("rises", (low, high)) if last is most else ("falls", (high, low))
        said = f"{verb} from {ends[0]} at {axis} {first.words} to {ends[1]} at {last.words}"
        even = _even(line, logarithmic=logarithmic)
        if unit == "%" and even is not None:
            said += f"; 50 % at about {even:.3g}"
    else:
        said = f"is {high} at most, at {axis} {most.words}, and {low} at least, at {least.words}"
    seeds = [seed for seed in most.draws if seed in least.draws]
    apart = difference(*([at.draws[seed] for seed in seeds] for at in (most, least)))
    if apart and len(line) == 2 and not math.isnan(apart.margin):
        scale, points = (100, "points") if unit == "%" else (1, unit.removeprefix("1"))
        by = f"{apart.mean * scale:.4g} ± {apart.margin * scale:.2g} {points}".rstrip()
        said += f", a difference of {by} by seed"
    if apart and apart.mean <= apart.margin:  # NaN for one draw
        said += ", which these seeds do not tell from chance (95 %)"
    return said


def _even(line: list[_At], *, logarithmic: bool) -> float | None:
    """Return where a line passes 0.5, between its points; None unless it does so once."""
    passed = []
    means = [(at.position, at.spread.mean) for at in line]
    for (x, y), (next_x, next_y) in pairwise(means):
        if (y - 0.5) * (next_y - 0.5) < 0:
            part = (0.5 - y) / (next_y - y)
            if logarithmic:
                passed.append(x * (next_x / x) ** part)
            else:
                passed.append(x + part * (next_x - x))
    return passed[0] if len(passed) == 1 else None


def _unit(name: str, unit: str, values: Sequence[float]) -> str:
    """Return the unit in which a sentence has values of a metric: "%" for shares alone."""
    whole = all(value == int(value) for value in values)
    share = unit == "1" and not whole and min(values) >= 0 and max(values) <= 1
    return "%" if share and not name.startswith("jain") else unit


def _number(value: float, unit: str) -> str:
    if unit == "%":
        return f"{value * 100:.3g} %"
    return f"{value:.4g}" + (f" {unit}" if unit != "1" else "")


def _doubts(
    points: list[list[Result]], axes: Sequence[str], units: dict[str, str]
) -> Iterator[str]:
    """List points whose draws fall in two groups, and those with undefined metrics."""
    every = [run for runs in points for run in runs]
    nowhere = [name for name in units if spread(_values(every, name)) is None]
    all_runs = "the run" if len(every) == 1 else f"all {len(every)} runs"
    for name in nowhere:
        yield f"{name} is undefined in {all_runs}{_reason(every, name)}."
    for runs in points:
        where = ", ".join(f"{axis} {label(runs[0].point[axis])}" for axis in axes) or "all seeds"
        for name, unit in units.items():
            values = _values(runs, name) if name not in nowhere else []
            found = spread(values)
            if found and found.groups:
                words = _unit(name, unit, found.groups)
                low, high = (_number(each, words) for each in found.groups)
                yield (
                    f"{name} at {where}: the draws fall in two groups, near {low} and near {high}; "
                    "mean and median describe neither."
                )
            if undefined := sum(each is None for each in values):
                share = f" in {undefined} of {len(values)} runs" if len(values) > 1 else ""
                yield f"{name} is undefined at {where}{share}{_reason(runs, name)}."


def _reason(runs: Sequence[Result], name: str) -> str:
    """Write the reason why a formula is undefined in some of the runs; the first of several."""
    found = dict.fromkeys(run.reasons[name] for run in runs if name in run.reasons)
    return f": {next(iter(found))}{', or another reason' * (len(found) > 1)}" if found else ""
