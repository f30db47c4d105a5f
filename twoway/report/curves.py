"""Figures of experiments: a sweep's curves, or those of one run."""

from collections.abc import Callable, Iterable, Mapping

import numpy as np
from capture_analysis.pictures.figure import Figure, Line, Style

from twoway.contract.labels import label
from twoway.measure.analysis import Analysis
from twoway.report.claims import SOURCES, Claim, claims
from twoway.report.figures import headline_figures
from twoway.report.results import Experiment
from twoway.report.safe_region import safe_region

# Experiments with a figure whose points do not lie along one axis of the sweep.
_OWN: Mapping[str, Callable[[Experiment], Figure]] = {"barakat-fig5-6": safe_region}
_STYLES: Mapping[str, Style] = {"theory": "dashed", "paper": "crosses", "simulation": "crosses"}


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
    """Draw a figure for each family of metrics with expectations at several x.

    x is the axis of the sweep with the most values; each combination of the other axes' values has
    its own lines, one measured and one per source.
    """
    axis = max(experiment.axes, key=lambda name: len(experiment.axes[name]))
    families: dict[str, list[Claim]] = {}
    for claim in claims(experiment):
        families.setdefault(claim.metric.partition(".")[0], []).append(claim)
    return [
        Figure(
            f"{experiment.id}-{family}",
            f"{family.replace('_', ' ')} against {axis}",
            "Lines with dots are measured, dashed ones computed for our parameters, "
            "crosses printed in the paper.",
            _axis_label(experiment, axis),
            _unit(family, found[0].unit),
            list(_lines(experiment, axis, found)),
        )
        for family, found in families.items()
        if len({_position(experiment, axis, claim) for claim in found}) > 1
    ]


def _unit(family: str, unit: str) -> str:
    return family.replace("_", " ") + (f", {unit}" if unit != "1" else "")


def _lines(experiment: Experiment, axis: str, found: list[Claim]) -> Iterable[Line]:
    for colour, (name, series) in enumerate(_series(axis, found).items()):
        x = np.array([_position(experiment, axis, claim) for claim in series])
        measured = [(a, claim.measured) for a, claim in zip(x, series, strict=True)]
        yield _line(f"{name}, measured", measured, "marked", colour)
        for source in SOURCES:
            said = [(a, claim.expected(source)) for a, claim in zip(x, series, strict=True)]
            if any(value is not None for _, value in said):
                yield _line(f"{name}, {source}", said, _STYLES[source], colour)


def _line(
    name: str, points: Iterable[tuple[float, float | None]], style: Style, colour: int
) -> Line:
    there = sorted((x, y) for x, y in points if y is not None)
    x, y = np.array(there, dtype=np.float64).reshape(-1, 2).T
    return Line(name, x, y, style, colour)


def _series(axis: str, found: list[Claim]) -> dict[str, list[Claim]]:
    """Group claims into lines: one metric, and equal values on all other axes."""
    series: dict[str, list[Claim]] = {}
    for claim in found:
        others = [f"{k} {label(v)}" for k, v in claim.result.point.items() if k != axis]
        name = ", ".join([claim.metric.partition(".")[2] or claim.metric, *others])
        series.setdefault(name, []).append(claim)
    return series


def _axis_label(experiment: Experiment, axis: str) -> str:
    """Label an axis: its name, and names of values that are no numbers."""
    labels = experiment.axes[axis]
    if all(_is_number(claim.result.point[axis]) for claim in claims(experiment)):
        return axis
    return f"{axis}: " + ", ".join(f"{place} {name}" for place, name in enumerate(labels))


def _is_number(value: object) -> bool:
    first = value[0] if isinstance(value, list) else value
    return isinstance(first, int | float) and not isinstance(first, bool)


def _position(experiment: Experiment, axis: str, claim: Claim) -> float:
    """Place a point on an axis: at its value, or index if no number."""
    value = claim.result.point[axis]
    if _is_number(value):
        return float(value[0] if isinstance(value, list) else value)
    return float(experiment.axes[axis].index(label(value)))
