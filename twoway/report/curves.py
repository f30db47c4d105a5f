"""Figures of experiments: a sweep's curves, or those of one run."""

from collections.abc import Callable, Iterable, Mapping

import numpy as np
from capture_analysis.pictures.figure import Figure, Line, Style

from twoway.contract.statements import Claim, Prediction, label
from twoway.contract.verdicts import Row
from twoway.measure.analysis import Analysis
from twoway.report.claims import Said
from twoway.report.figures import headline_figures
from twoway.report.results import Experiment, Result
from twoway.report.safe_region import safe_region

# Experiments with a figure whose points do not lie along one axis of the sweep.
_OWN: Mapping[str, Callable[[Experiment], Figure]] = {"barakat-fig5-6": safe_region}


def pictures(experiment: Experiment) -> list[Figure]:
    """Draw an experiment's main figures; ids are unique among all experiments."""
    own = [_OWN[experiment.id](experiment)] if experiment.id in _OWN else []
    if experiment.axes and (found := own + curves(experiment)):
        return found
    analysis = Analysis(experiment.results[0].folder)
    return [_named(figure, experiment.id) for figure in headline_figures(analysis)]


def _named(figure: Figure, name: str) -> Figure:
    return Figure(**{**vars(figure), "id": f"{name}-{figure.id}"})


def curves(experiment: Experiment) -> list[Figure]:
    """Draw a figure for each family of metrics of which something is said at several x.

    x is the axis of the sweep with the most values; each combination of the other axes' values has
    its own lines: measured, predicted, the paper's formula and the paper's numbers.
    """
    axis = max(experiment.axes, key=lambda name: len(experiment.axes[name]))
    families: dict[str, list[Said[Row]]] = {}
    for result in experiment.results:
        for row in result.verdicts.rows:
            families.setdefault(row.metric.partition(".")[0], []).append(Said(result, row))
    return [
        Figure(
            f"{experiment.id}-{family}",
            f"{family.replace('_', ' ')} against {axis}",
            "Lines with dots are measured, dashed ones computed for our parameters, "
            "crosses printed in the paper.",
            _axis_label(experiment, axis),
            _unit(family, found[0].row.unit),
            list(_lines(experiment, axis, found)),
        )
        for family, found in families.items()
        if len({_position(experiment, axis, said.result) for said in found}) > 1
    ]


def _unit(family: str, unit: str) -> str:
    return family.replace("_", " ") + (f", {unit}" if unit != "1" else "")


def _lines(experiment: Experiment, axis: str, found: list[Said[Row]]) -> Iterable[Line]:
    for colour, (name, series) in enumerate(_series(axis, found).items()):
        kinds: dict[tuple[str, Style], dict[float, float | None]] = {}
        for said in series:
            x = _position(experiment, axis, said.result)
            for who, style, value in _values(said.row):
                kinds.setdefault((who, style), {}).setdefault(x, value)
        for (who, style), values in kinds.items():
            there = sorted((x, y) for x, y in values.items() if y is not None)
            if there or who == "measured":
                xs, ys = np.array(there, dtype=np.float64).reshape(-1, 2).T
                yield Line(f"{name}, {who}", xs, ys, style, colour)


def _values(row: Row) -> Iterable[tuple[str, Style, float | None]]:
    yield "measured", "marked", row.measured
    if isinstance(row, Prediction):
        yield "predicted", "dashed", row.value
        yield "paper's formula", "dashed", row.printed
    if isinstance(row, Claim) and not row.against:
        yield "paper" if row.by == "paper" else "their simulator", "crosses", row.value


def _series(axis: str, found: list[Said[Row]]) -> dict[str, list[Said[Row]]]:
    """Group rows into lines: one metric, and equal values on all other axes."""
    series: dict[str, list[Said[Row]]] = {}
    for said in found:
        others = [f"{k} {label(v)}" for k, v in said.result.point.items() if k != axis]
        metric = said.row.metric
        name = ", ".join([metric.partition(".")[2] or metric, *others])
        series.setdefault(name, []).append(said)
    return series


def _axis_label(experiment: Experiment, axis: str) -> str:
    """Label an axis: its name, and names of values that are no numbers."""
    labels = experiment.axes[axis]
    if all(_is_number(result.point[axis]) for result in experiment.results):
        return axis
    return f"{axis}: " + ", ".join(f"{place} {name}" for place, name in enumerate(labels))


def _is_number(value: object) -> bool:
    first = value[0] if isinstance(value, list) else value
    return isinstance(first, int | float) and not isinstance(first, bool)


def _position(experiment: Experiment, axis: str, result: Result) -> float:
    """Place a point on an axis: at its value, or index if no number."""
    value = result.point[axis]
    if _is_number(value):
        return float(value[0] if isinstance(value, list) else value)
    return float(experiment.axes[axis].index(label(value)))
