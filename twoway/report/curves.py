"""Figures of experiments: a sweep's curves, or those of one run."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from capture_analysis.errors import AnalysisError
from capture_analysis.pictures.figure import Figure, Line, Style

from twoway.contract.statements import Claim, Prediction, axis_number, label
from twoway.contract.verdicts import Row
from twoway.errors import in_a_sentence
from twoway.manifest import SEED, Scatter, without_captures
from twoway.measure.analysis import Analysis
from twoway.report.figures import headline_figures
from twoway.report.flow_groups import metrics_of
from twoway.report.results import Experiment, Result
from twoway.report.safe_region import safe_region
from twoway.report.statistics import spread

# In place of a sweep's axis: the runs in order, as in the rows of a table.
RUN = "run"

# An axis is logarithmic if its largest value is at least this multiple of its least
_DECADES = 1000
# So it is if each value is at least this multiple of the one before, and the largest this of the
# least: doublings, or 1, 2, 5 and 10.
_STEP, _SPAN = 1.6, 8

# Palette index of a paper's numbers: black, seen on any line.
PRINTED = 6

# Figures of their own, by experiment: their points do not lie along one axis of the sweep.
_OWN: Mapping[str, Callable[[Experiment], Figure]] = {"barakat-fig5-6": safe_region}


def pictures(experiment: Experiment) -> list[Figure]:
    """Draw an experiment's main figures; ids are unique among all experiments.

    They show its metrics over its points; an experiment without an axis has those of its run, if
    that has captures.
    """
    first = experiment.results[0].folder
    if experiment.axes or without_captures(first):
        return over_points(experiment)
    with in_a_sentence(first, AnalysisError):
        figures = headline_figures(Analysis(first))
    return [replace(figure, id=f"{experiment.id}-{figure.id}") for figure in figures]


def over_points(experiment: Experiment) -> list[Figure]:
    """Draw the figures that need no captures: metrics over points, if there is an axis."""
    own = [_OWN[experiment.id](experiment)] if experiment.id in _OWN else []
    return own + curves(experiment) if experiment.axes else []


class _Value(NamedTuple):
    """A value of a metric at a point, with its source, its look and its precision."""

    result: Result
    metric: str
    unit: str
    who: str
    style: Style
    value: float | None
    error: float = 0.0
    letter: str = ""


# Units by the last part of a field's or an axis's name.
_UNITS = {
    "bdp": "BDP",
    "bytes": "bytes",
    "mbit": "Mbit/s",
    "ms": "ms",
    "packets": "packets",
    "percent": "%",
    "s": "s",
    "us": "µs",
}
# The caption's words for the lines that `_values` returns.
LEGEND = (
    "Lines with dots are measured, dashed ones computed for our parameters, crosses printed in the "
    "paper; a bar through a cross is the precision of the print, \u2264 and \u2265 are bounds."
)


def curves(experiment: Experiment) -> list[Figure]:
    """Draw a figure for each family of metrics that has statements at several x.

    x is the axis of the sweep with the most values; each combination of the other axes' values has
    its own lines: measured, predicted, the paper's formula and the paper's numbers.
    """
    families: dict[str, list[_Value]] = {}
    for result in experiment.results:
        for row in result.verdicts.rows:
            families.setdefault(row.metric.partition(".")[0], []).extend(_values(result, row))
    return _draw(experiment, families, LEGEND)


def said_lines(
    experiment: Experiment, axis: str, metrics: Iterable[str], link: Callable[[Result], str]
) -> tuple[str, list[Line]]:
    """Draw metrics over an axis, measured at all points, with every statement on them.

    Args:
        experiment: the experiment with its runs; or several experiments' runs as one.
        axis: the axis of the sweep that is x.
        metrics: names, such as goodput.left, or families of them.
        link: returns the address that a click on a run's point opens.

    Returns: the label of y, and the lines; no lines if no run has such a metric.
    """
    found: list[_Value] = []
    for wanted in metrics:
        for result in experiment.results:
            found += _measured_values(result, wanted)
            for row in result.verdicts.rows:
                if wanted in (row.metric, row.metric.partition(".")[0]):
                    found += _values(result, row)
    if not found:
        return "", []
    label_y = with_unit(found[0].metric.partition(".")[0], found[0].unit)
    return label_y, list(_lines(experiment, axis, found, link))


def _measured_values(result: Result, wanted: str) -> Iterable[_Value]:
    for metric, found in metrics_of(result.metrics, wanted).items():
        yield _Value(result, metric, found.unit, "measured", "marked", found.value)


def measured_curves(
    experiment: Experiment, names: Iterable[str], link: Callable[[Result], str] | None = None
) -> list[Figure]:
    """Draw a figure for each family of metrics, such as goodput, over a sweep's longest axis.

    Families that no run has are left out. `link` returns the address that a click on a run's point
    opens; None in a file.
    """
    families: dict[str, list[_Value]] = {name: [] for name in names}
    for result in experiment.results:
        for family, values in families.items():
            values += [
                _Value(result, metric, found.unit, "", "marked", found.value)
                for metric, found in metrics_of(result.metrics, family).items()
            ]
    return _draw(experiment, families, "Each dot is a run.", link)


def scatters(experiment: Experiment, link: Callable[[Result], str]) -> list[Figure]:
    """Draw the figures of one metric against another that the experiment lists.

    Each combination of the axes' values has a colour; repetitions have that of their point.
    """
    return [
        figure
        for asked in experiment.said.figures
        for value in experiment.axes.get(asked.for_each or "", [""])
        if (figure := _scatter(experiment, asked, value, link)).lines
    ]


def _scatter(
    experiment: Experiment, asked: Scatter, value: str, link: Callable[[Result], str]
) -> Figure:
    """Draw one metric against another for one value of an axis; "" for all runs."""
    axis = asked.for_each or ""
    dots: dict[str, list[tuple[float, float, str]]] = {}
    units = {asked.x: "1", asked.y: "1"}
    for result in experiment.results:
        if value and label(result.point[axis]) != value:
            continue
        metrics = result.metrics.metrics
        for metric, found in metrics_of(result.metrics, asked.y).items():
            _, dot, owner = metric.partition(".")
            other = metrics.get(f"{asked.x}{dot}{owner}")
            if other is None:
                continue
            units = {asked.x: other.unit, asked.y: found.unit}
            if found.value is not None and other.value is not None:
                name = _name(metric, result, axis)
                dots.setdefault(name, []).append((other.value, found.value, link(result)))
    lines = []
    for colour, (name, there) in enumerate(dots.items()):
        x, y = np.array([dot[:2] for dot in there], float).T
        lines.append(Line(name, x, y, "points", colour, links=tuple(dot[2] for dot in there)))
    where = f", {axis} {value}" if value else ""
    return Figure(
        "-".join(filter(None, [experiment.id, asked.y, "against", asked.x, value])),
        f"{asked.y.replace('_', ' ')} against {asked.x.replace('_', ' ')}{where}",
        "Each dot is a run.",
        with_unit(asked.x, units[asked.x]),
        with_unit(asked.y, units[asked.y]),
        lines,
    )


def _draw(
    experiment: Experiment,
    families: Mapping[str, list[_Value]],
    caption: str,
    link: Callable[[Result], str] | None = None,
) -> list[Figure]:
    axis = longest_axis(experiment)
    if experiment.repeated and axis != SEED:
        caption += " Lines are means over the seeds, bars their 95 % intervals."
    return [
        Figure(
            f"{experiment.id}-{family}",
            f"{family.replace('_', ' ')} against {axis}",
            caption,
            axis_label(experiment, axis),
            with_unit(family, found[0].unit),
            list(_lines(experiment, axis, found, link)),
            log_x=is_logarithmic(experiment, axis),
            x_names=axis_names(experiment, axis),
        )
        for family, found in families.items()
        if len({position(experiment, axis, each.result) for each in found}) > 1
    ]


def longest_axis(experiment: Experiment) -> str:
    """Return the axis with the most values; that of seeds if there is no other."""
    across = [name for name in experiment.axes if not (experiment.repeated and name == SEED)]
    return max(across, key=lambda name: len(experiment.axes[name])) if across else SEED


def is_logarithmic(experiment: Experiment, axis: str) -> bool:
    """Tell whether an axis's values are doublings, decades or otherwise far apart."""
    if axis_names(experiment, axis):
        return False
    values = sorted({position(experiment, axis, result) for result in experiment.results})
    if values[0] <= 0:
        return False
    steps = [high / low for low, high in pairwise(values)]
    spans = values[-1] / values[0]
    return spans >= _DECADES or (len(steps) > 1 and min(steps) >= _STEP and spans >= _SPAN)


def with_unit(family: str, unit: str) -> str:
    """Label an axis by a family of metrics and its unit."""
    return family.replace("_", " ") + (f", {unit}" if unit != "1" else "")


def _lines(
    experiment: Experiment, axis: str, found: list[_Value], link: Callable[[Result], str] | None
) -> Iterable[Line]:
    for colour, (name, series) in enumerate(_series(axis, found).items()):
        kinds: dict[tuple[str, Style], dict[tuple[float, float | None], _Value]] = {}
        repeated: dict[float, list[_Value]] = {}
        for each in series:
            x = position(experiment, axis, each.result)
            # Two claims may print two values for one point.
            key = (x, each.value if each.style == "crosses" else None)
            kinds.setdefault((each.who, each.style), {}).setdefault(key, each)
            if each.style == "marked" and each.value is not None:
                repeated.setdefault(x, []).append(each)
        for (who, style), values in kinds.items():
            title = f"{name}, {who}" if who else name
            there = [(x, v, v.value) for (x, _), v in values.items() if v.value is not None]
            there.sort(key=lambda each: each[0])
            if style == "marked" and experiment.repeated and axis != SEED:
                yield from _spread(title, colour, repeated, link)
            elif there or style == "marked":
                xs, ys = np.array([(x, y) for x, _, y in there], float).reshape(-1, 2).T
                links = tuple(link(v.result) for _, v, _ in there) if link else ()
                unordered = style == "marked" and (axis == SEED or axis_names(experiment, axis))
                drawn: Style = "points" if unordered else style
                letter = next((v.letter for _, v, _ in there), "")
                look = PRINTED if style in ("crosses", "letters") else colour
                yield Line(title, xs, ys, drawn, look, letter=letter, links=links)
            if errors := [(x, y - v.error, y + v.error) for x, v, y in there if v.error]:
                xs, low, high = np.array(errors, float).T
                yield Line(f"{title}: precision", xs, low, "spans", PRINTED, top=high)


def _spread(
    name: str,
    colour: int,
    values: Mapping[float, list[_Value]],
    link: Callable[[Result], str] | None,
) -> Iterable[Line]:
    """Draw repetitions: their means with intervals, as in the answer, and each run."""
    x = np.array(sorted(values), float)
    found = [spread(each.value for each in values[place]) for place in x]
    mean, margin = (
        np.array([getattr(each, which) for each in found], float) for which in ("mean", "margin")
    )
    yield Line(name, x, mean, "line", colour)
    known = np.isfinite(margin)
    low, high = (mean - margin)[known], (mean + margin)[known]
    yield Line(name, x[known], low, "spans", colour, top=high)
    dots = [(place, each) for place in x for each in values[place]]
    xs, ys = np.array([(place, each.value) for place, each in dots], float).reshape(-1, 2).T
    links = tuple(link(each.result) for _, each in dots) if link else ()
    yield Line(name, xs, ys, "points", colour, links=links)


def _values(result: Result, row: Row) -> Iterable[_Value]:
    """List a row's values: measured and expected."""
    yield _Value(result, row.metric, row.unit, "measured", "marked", row.measured)
    of = (result, row.metric, row.unit)
    if isinstance(row, Prediction):
        yield _Value(*of, "predicted", "dashed", row.value)
        yield _Value(*of, "paper's formula", "dashed", row.printed)
    if isinstance(row, Claim) and not row.against:
        who = "paper" if row.by == "paper" else "their simulator"
        yield _Value(*of, who, "crosses", row.value, row.tolerance or 0)
        yield _Value(*of, f"{who}: at most", "letters", row.at_most, letter="\u2264")
        yield _Value(*of, f"{who}: at least", "letters", row.at_least, letter="\u2265")


def _series(axis: str, found: list[_Value]) -> dict[str, list[_Value]]:
    """Group values into lines: one metric, and equal values on all other axes."""
    series: dict[str, list[_Value]] = {}
    experiments = {each.result.experiment_id for each in found}
    values: dict[str, set[str]] = {}
    for each in found:
        for name, value in each.result.point.items():
            values.setdefault(name, set()).add(label(value))
    for each in found:
        left_out = (axis, SEED) if each.result.manifest.repetition else (axis,)
        point = each.result.point.items()
        others = [
            f"{k} {label(v)}"
            for k, v in point
            if axis != RUN and k not in left_out and len(values[k]) > 1
        ]
        of = [] if axis == RUN or len(experiments) == 1 else [each.result.experiment_id]
        name = ", ".join([*of, each.metric.partition(".")[2] or each.metric, *others])
        series.setdefault(name, []).append(each)
    return series


def _name(metric: str, result: Result, axis: str) -> str:
    """Name a dot by its metric's place and by its run's values on all other axes."""
    left_out = (axis, SEED) if result.manifest.repetition else (axis,)
    others = [f"{k} {label(v)}" for k, v in result.point.items() if k not in left_out]
    return ", ".join([metric.partition(".")[2] or metric, *others])


def axis_label(experiment: Experiment, axis: str) -> str:
    """Label an axis by its name, with the unit at its end or that of the field with its values.

    The runs of a table need no label.
    """
    if axis == RUN or axis not in experiment.said.matrix:
        return "" if axis == RUN else axis
    name, underscore, end = axis.rpartition("_")
    asked = experiment.said.matrix[axis]
    if end not in _UNITS and not isinstance(asked.to, dict):
        name, underscore = axis, "_"
        end = asked.set[0].rpartition("_")[2] if asked.set else ""
    if end not in _UNITS:
        return axis.replace("_", " ")
    return name.replace("_", " ") + ", " * bool(underscore) + _UNITS[end]


def axis_names(experiment: Experiment, axis: str) -> tuple[str, ...]:
    """Name the values of an axis that are not numbers, in their order on it."""
    if axis == RUN:
        return tuple(result.id for result in experiment.results)
    return () if axis in experiment.numeric_axes else tuple(experiment.axes[axis])


def position(experiment: Experiment, axis: str, result: Result) -> float:
    """Place a point on an axis: at its value, or at its index if that is not a number."""
    if axis == RUN:
        return float(experiment.results.index(result))
    value = result.point[axis]
    number = axis_number(value) if axis in experiment.numeric_axes else None
    return float(experiment.axes[axis].index(label(value))) if number is None else number
