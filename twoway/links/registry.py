"""All elements of a link: the subclasses of Element in the modules of this package."""

from functools import cache

from capture_analysis.discovery import classes_of

from twoway import links
from twoway.links.element import Element, Part


@cache
def elements() -> dict[str, type[Element]]:
    """List the elements by their field of a direction."""
    return {each.FIELD: each for each in classes_of(links, Element)}


def pages() -> dict[str, str]:
    """List the titles of the parts of links by field: the elements, and what both ends share."""
    return {each.FIELD: each.TITLE for each in classes_of(links, Part)}
