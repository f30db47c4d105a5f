"""All estimators from one capture: the subclasses of FromOne in the package `metrics`."""

from functools import cache

from capture_analysis import metrics
from capture_analysis.discovery import classes_of
from capture_analysis.one_capture.from_one import FromOne


@cache
def all_from_one() -> tuple[type[FromOne], ...]:
    """List the estimators from one capture, by module name."""
    return classes_of(metrics, FromOne)
