"""All estimators from two captures: the subclasses of FromPair in the package `metrics`."""

from functools import cache

from capture_analysis import metrics
from capture_analysis.discovery import classes_of
from capture_analysis.two_captures.from_pair import FromPair


@cache
def all_from_pair() -> tuple[type[FromPair], ...]:
    """List the estimators from two captures, by module name."""
    return classes_of(metrics, FromPair)
