"""The only point of an experiment, for runs over several hosts."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from twoway.description.point import Point


def one_point(experiment: str) -> "Point":
    """Load the only point of an experiment.

    Raises: UsageError if the experiment has several.
    """
    from twoway.description.point import point_names
    from twoway.errors import UsageError
    from twoway.runs.points import load_point

    names = point_names(experiment)
    if len(names) > 1:
        raise UsageError(f"{experiment}: has {len(names)} points; name one", f"as {names[0]}")
    return load_point(names[0])
