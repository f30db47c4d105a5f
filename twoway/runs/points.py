"""Experiments with all files that they refer to, checked, with the names of metrics.

Metric names come from the code that measures, which a description may not import.
"""

from collections.abc import Iterable, Iterator, Sequence

from twoway.description import point
from twoway.description.reading import ExperimentSource
from twoway.errors import SpecError
from twoway.manifest import Described
from twoway.measure.registry import metric_names
from twoway.runs.manifest import describe


def load_point(name: str) -> point.Point:
    """Read an experiment, or a point of one (see `twoway.description.point.load_point`)."""
    return point.load_point(name, metric_names)


def load_points(source: ExperimentSource, seeds: int | None = None) -> list[point.Point]:
    """Read all points of an experiment (see `twoway.description.point.load_points`)."""
    return point.load_points(source, metric_names, seeds)


def refuse_lost_references(points: Iterable[point.Point]) -> None:
    """Raise SpecError if claims refer to runs or metrics that do not exist, naming all."""
    problems = dict.fromkeys(problem for point in points for problem in reference_problems(point))
    if problems:
        raise SpecError(list(problems))


def reference_problems(point: point.Point) -> Iterator[str]:
    """List problems of the runs that a point's claims refer to.

    Such a run or metric may be missing, and an explaining run may differ in more than it removes.
    """
    for claim in point.claims:
        differs = claim.differs
        referred = [(claim.against, claim.metric)]
        if differs:
            referred.append((differs.explained_by, differs.metric or claim.metric))
        for run, metric in referred:
            if run is None:
                continue
            try:
                known = load_point(run).metrics
            except SpecError as error:
                yield f"{point.id}: claim about {claim.metric}: {error}"
                continue
            if metric not in known:
                yield f'{point.id}: claim about {claim.metric}: {run} has no metric "{metric}"'
        if differs and differs.explained_by:
            problems = _not_isolated(describe(point), differs.explained_by, differs.removes)
            yield from (f"{point.id}: claim about {claim.metric}: {each}" for each in problems)


def _not_isolated(here: Described, run: str, removes: Sequence[str]) -> Iterator[str]:
    """List the parameters in which an explaining run differs, though it does not remove them."""
    from twoway.report.comparing import parameters  # noqa: PLC0415 - few points have such a claim

    try:
        there = describe(load_point(run))
    except SpecError:
        return  # reported above
    differing = parameters([here, there])
    if more := [path for path in differing if path not in removes]:
        yield f"{run} differs in more than it removes: {', '.join(more)}"
    if idle := [path for path in removes if path not in differing]:
        yield f"{run} does not differ in {', '.join(idle)}, which it should remove: name each value"
