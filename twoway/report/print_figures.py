"""Figures of several runs for print: curves, distributions, boxes, maps, and runs over time."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from statistics import fmean

import numpy as np
from capture_analysis.errors import AnalysisError
from capture_analysis.pictures.figure import OVER_TIME, Figure, FloatArray, Line, Style

from twoway.contract.statements import label
from twoway.errors import UsageError, in_a_sentence
from twoway.manifest import SEED
from twoway.measure.analysis import Analysis
from twoway.messages import suggest
from twoway.report.curves import axis_label, longest_axis, measured_curves, with_unit
from twoway.report.repetitions import group_runs
from twoway.report.results import Experiment, Result
from twoway.report.series import named_series


def drawn_figures(experiment: Experiment, names: Sequence[str]) -> list[Figure]:
    """Draw figures of a sweep's runs, with their derived metrics.

    A metric or family, such as goodput, names its curve; KIND:NAME another figure.

    Raises: UsageError for a name that no run has; AnalysisError if captures are needed and left
        out.
    """
    figures = []
    for asked in names:
        kind, colon, name = asked.partition(":")
        if colon and kind not in KINDS:
            known = ", ".join(f"{each}:NAME" for each in KINDS)
            raise UsageError(f"--figure: {asked:.80}: no such kind", f"there are NAME, {known}")
        figure = KINDS[kind](experiment, name) if colon else _curve(experiment, asked)
        figures.append(figure)
    return figures


def _curve(experiment: Experiment, name: str) -> Figure:
    _values(experiment.results, name)
    found = measured_curves(experiment, [name])
    if not found:
        raise UsageError(f"{name:.80}: a curve needs a second point", "try cdf: or box:")
    return replace(found[0], id=_id(experiment.id, name))


def _over_time(experiment: Experiment, name: str) -> Figure:
    """Draw a time series of each point over each other; of repetitions the first."""
    lines, y_label = [], ""
    for colour, (point, runs) in enumerate(_points(experiment).items()):
        unit, x, y = _series(runs[0], name)
        y_label = with_unit(name.partition(".")[0], unit)
        style: Style = "steps" if name.startswith(("goodput", "queue", "cwnd")) else "line"
        lines.append(Line(point, x, y, style, colour + 1))  # colour 0 is drawn wide
    seed = f", seed {experiment.results[0].point[SEED]}" if experiment.repeated else ""
    caption = f"{name} of {len(lines)} runs{seed}."
    return Figure(_id("time", name), f"{name} over time", caption, OVER_TIME, y_label, lines)


def _distribution(experiment: Experiment, name: str) -> Figure:
    """Draw the share of values that are at most x: of a metric's runs, or of a series' times."""
    lines, unit = [], "1"
    of_series = not any(_matching(each, name) for each in experiment.results)
    for colour, (point, runs) in enumerate(_points(experiment).items()):
        if of_series:
            found = [_series(run, name) for run in runs]
            unit, values = found[0][0], np.concatenate([y for _, _, y in found])
        else:
            unit, values = _values(runs, name)
        x = np.sort(values)
        share = np.arange(len(x) + 1) / max(len(x), 1)
        lines.append(Line(point, np.concatenate((x[:1], x)), share, "steps", colour + 1))
    of = "samples over time" if of_series else "flows and seeds"
    caption = f"The share of {of} whose {name} is at most the value on the x axis."
    caption += _left_out(experiment, name)
    title, x_label = f"Distribution of {name}", with_unit(name.partition(".")[0], unit)
    return Figure(_id("cdf", name), title, caption, x_label, f"share of {of}", lines)


def _boxes(experiment: Experiment, name: str) -> Figure:
    """Draw the quartiles of each point's values as a box, least and most as its whiskers."""
    unit, _ = _values(experiment.results, name)
    axis = longest_axis(experiment)
    places = list(dict.fromkeys(label(each.point[axis]) for each in experiment.results))
    groups: dict[str, list[tuple[int, FloatArray]]] = {}
    for runs in group_runs(experiment.results).values():
        place = places.index(label(runs[0].point[axis]))
        values = _values(runs, name)[1]
        groups.setdefault(experiment.place(runs[0], axis), []).append((place, values))
    width = 0.7 / len(groups)
    lines = []
    for number, (group, boxes) in enumerate(groups.items()):
        shift = (number - (len(groups) - 1) / 2) * width
        strokes = [_box(place + shift, 0.4 * width, v) for place, v in boxes if len(v)]
        x, y = np.concatenate(strokes, axis=1) if strokes else np.empty((2, 0))
        lines.append(Line(group or name, x, y, "line", number + 1))
    caption = f"Quartiles of {name} over flows and seeds; whiskers reach its least and its most."
    caption += _left_out(experiment, name)
    title, y_label = f"{name} against {axis}", with_unit(name.partition(".")[0], unit)
    names = tuple(places)
    x_label = axis_label(experiment, axis)
    return Figure(_id("box", name), title, caption, x_label, y_label, lines, x_names=names)


def _box(x: float, reach: float, values: FloatArray) -> FloatArray:
    """Return one stroke for a box with whiskers; NaN lifts the pen; shape (2, n)."""
    least, lower, middle, upper, most = np.quantile(values, (0, 0.25, 0.5, 0.75, 1))
    pen = (np.nan, np.nan)
    left, right = x - reach, x + reach
    frame = [(left, lower), (right, lower), (right, upper), (left, upper), (left, lower), pen]
    inside = [(left, middle), (right, middle), pen]
    whiskers = [(x, least), (x, lower), pen, (x, upper), (x, most), pen]
    return np.array([*frame, *inside, *whiskers]).T


def _map(experiment: Experiment, name: str) -> Figure:
    """Draw the mean of a metric for each pair of values of two axes."""
    unit, _ = _values(experiment.results, name)
    axes = map_axes(experiment)
    if len(axes) != 2:
        raise UsageError(
            f"--figure: map:{name:.80}: needs two axes with several values, {experiment.id} has "
            f"{len(axes)}"
        )
    across, up = axes
    xs, ys = experiment.axes[across], experiment.axes[up]
    cells = []
    for runs in group_runs(experiment.results).values():
        point = runs[0].point
        if len(values := _values(runs, name)[1]):
            at = (xs.index(label(point[across])), ys.index(label(point[up])))
            cells.append((*at, fmean(values)))
    x, y, value = np.array(cells, float).reshape(-1, 3).T
    line = Line(with_unit(name, unit), x, y, "cells", 0, top=value)
    title = f"{name} against {across} and {up}"
    seeds = ", the mean over the seeds" if experiment.repeated else ""
    x_label, y_label = (axis_label(experiment, axis) for axis in axes)
    figure = Figure(_id("map", name), title, f"{name}{seeds}.", x_label, y_label, [line])
    return replace(figure, x_names=tuple(xs), y_names=tuple(ys))


def map_axes(experiment: Experiment) -> list[str]:
    """List the axes with several values, the longest first; that of seeds is none of them."""
    axes = [a for a, v in experiment.axes.items() if a != SEED and len(v) > 1]
    return sorted(axes, key=lambda axis: -len(experiment.axes[axis]))


KINDS: Mapping[str, Callable[[Experiment, str], Figure]] = {
    "time": _over_time,
    "cdf": _distribution,
    "box": _boxes,
    "map": _map,
}


def _points(experiment: Experiment) -> dict[str, list[Result]]:
    """Group runs by what distinguishes their points."""
    found: dict[str, list[Result]] = {}
    for runs in group_runs(experiment.results).values():
        found[experiment.place(runs[0]) or experiment.id] = runs
    return found


def _matching(run: Result, name: str) -> list[str]:
    """List a run's metrics of a name, a family, or with "*" for any characters."""
    every = run.metrics.metrics
    found = [m for m in every if m == name or m.partition(".")[0] == name or fnmatchcase(m, name)]
    return [m for m in found if "*" not in m or m == name]


def _values(runs: Sequence[Result], name: str) -> tuple[str, FloatArray]:
    """Return the unit and all defined values of matching metrics.

    Raises: UsageError if no run has one.
    """
    found = [run.metrics.metrics[each] for run in runs for each in _matching(run, name)]
    if not found:
        known = runs[0].metrics.metrics
        families = dict.fromkeys(each.partition(".")[0] for each in known)
        raise UsageError(
            f"--figure: {name:.80}: no such metric{suggest(name, [*families, *known])}",
            f"there are {', '.join(families)}",
        )
    return found[0].unit, np.array([each.value for each in found if each.value is not None], float)


def _left_out(experiment: Experiment, name: str) -> str:
    """Write how many values a figure lacks, such as times of transfers that did not end."""
    every = experiment.results
    found = [run.metrics.metrics[each].value for run in every for each in _matching(run, name)]
    gone = found.count(None)
    return f" Left out: {gone} of {len(found)} values, which are undefined." if gone else ""


def _series(run: Result, name: str) -> tuple[str, FloatArray, FloatArray]:
    with in_a_sentence(run.folder, AnalysisError):
        unit, times, values = named_series(Analysis(run.folder), name)
    return unit, times, np.asarray(values, float)


def _id(kind: str, name: str) -> str:
    return f"{kind}-{name.replace('*', 'all').replace('.', '-')}"
