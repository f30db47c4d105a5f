"""All kinds of traffic: the subclasses of Traffic in the modules of this package."""

from functools import cache

from capture_analysis.discovery import classes_of

from twoway.description import traffic
from twoway.description.traffic.traffic import Traffic


@cache
def kinds() -> dict[str, type[Traffic]]:
    """List the kinds by their field of a flow."""
    return {kind.FIELD: kind for kind in classes_of(traffic, Traffic)}
