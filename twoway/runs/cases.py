"""Experiments with all that they refer to, checked, the names of metrics included.

Names of metrics are those that are measured, and a spec knows nothing of measuring.
"""

from collections.abc import Iterable, Iterator

from twoway.errors import SpecError
from twoway.measure.registry import metric_names
from twoway.spec import point


def load_case(name: str) -> point.Case:
    """Read an experiment, or a point of one (see `twoway.spec.point.load_case`)."""
    return point.load_case(name, metric_names)


def refuse_lost_references(cases: Iterable[point.Case]) -> None:
    """Raise SpecError if claims refer to runs or metrics that do not exist, naming all."""
    problems = dict.fromkeys(problem for case in cases for problem in reference_problems(case))
    if problems:
        raise SpecError(list(problems))


def reference_problems(case: point.Case) -> Iterator[str]:
    """List the runs and metrics that a point's claims refer to and that do not exist."""
    for claim in case.claims:
        differs = claim.differs
        referred = [(claim.against, claim.metric)]
        if differs:
            referred.append((differs.explained_by, differs.metric or claim.metric))
        for run, metric in referred:
            if run is None:
                continue
            try:
                known = load_case(run).metrics
            except SpecError as error:
                yield f"{case.id}: claim about {claim.metric}: {error}"
                continue
            if metric not in known:
                yield f'{case.id}: claim about {claim.metric}: {run} has no metric "{metric}"'
