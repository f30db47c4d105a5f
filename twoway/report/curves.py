"""Pictures of experiments: of a sweep, its curves; of a single run, its queues or its channel."""

from collections.abc import Callable, Iterable, Mapping

import numpy as np
from capture_analysis.pictures.figure import Figure, Line, Style

from twoway.contract.labels import label
from twoway.measure.analysis import Analysis
from twoway.report.claims import SOURCES, Claim, claims
from twoway.report.figures import headline_figures
from twoway.report.results import Experiment
from twoway.report.safe_region import safe_region

# Pictures in which an experiment's points do not lie along one of its axes.
_OWN: Mapping[str, Callable[[Experiment], Figure]] = {"barakat-fig5-6": safe_region}
_STYLES: Mapping[str, Style] = {"theory": "dashed", "paper": "crosses", "simulation": "crosses"}


def pictures(experiment: Experiment) -> list[Figure]:
    """What shows an experiment best; figures' ids are unique among all experiments."""
    own = [_OWN[experiment.id](experiment)] if experiment.id in _OWN else []
    if experiment.axes and (found := own + curves(experiment)):
        return found
    analysis = Analysis(experiment.results[0].folder)
    return [_named(figure, experiment.id) for figure in headline_figures(analysis)]


def _named(figure: Figure, name: str) -> Figure:
    return Figure(**{**vars(figure), "id": f"{name}-{figure.id}"})


def curves(experiment: Experiment) -> list[Figure]:
    """One figure for each family of metrics that is expected at several x: measured, theory, paper.

    x is the axis of the sweep with the most values; the others' values tell lines apart.
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
    """Claims that make one line: of one metric, and alike on all other axes."""
    series: dict[str, list[Claim]] = {}
    for claim in found:
        others = [f"{k} {label(v)}" for k, v in claim.result.point.items() if k != axis]
        name = ", ".join([claim.metric.partition(".")[2] or claim.metric, *others])
        series.setdefault(name, []).append(claim)
    return series


def _axis_label(experiment: Experiment, axis: str) -> str:
    """An axis's name, with what its numbers stand for if its values are none."""
    labels = experiment.axes[axis]
    if all(_is_number(claim.result.point[axis]) for claim in claims(experiment)):
        return axis
    return f"{axis}: " + ", ".join(f"{place} {name}" for place, name in enumerate(labels))


def _is_number(value: object) -> bool:
    first = value[0] if isinstance(value, list) else value
    return isinstance(first, int | float) and not isinstance(first, bool)


def _position(experiment: Experiment, axis: str, claim: Claim) -> float:
    """Where a point lies on the axis: at its value, or at its place in the list if that is none."""
    value = claim.result.point[axis]
    if _is_number(value):
        return float(value[0] if isinstance(value, list) else value)
    return float(experiment.axes[axis].index(label(value)))
