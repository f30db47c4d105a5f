"""The only point of an experiment, for runs over several hosts."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from twoway.spec.point import Case


def one_case(experiment: str) -> "Case":
    """Load the only point of an experiment.

    Raises: UsageError if the experiment has several.
    """
    from twoway.errors import UsageError
    from twoway.runs.cases import load_case
    from twoway.spec.point import case_names

    names = case_names(experiment)
    if len(names) > 1:
        raise UsageError(f"{experiment}: has {len(names)} points; name one", f"as {names[0]}")
    return load_case(names[0])
