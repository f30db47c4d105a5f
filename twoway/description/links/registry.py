"""All elements of a link: the subclasses of Element in the modules of this package."""

from functools import cache

from capture_analysis.discovery import classes_of

from twoway.description import links


@cache
def elements() -> dict[str, type[links.Element]]:
    """List the elements by their field of a direction."""
    return {element.FIELD: element for element in classes_of(links, links.Element)}
