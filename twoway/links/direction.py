"""One direction of a link with a field for each element, in profiles and manifests alike."""

from functools import cache
from typing import TYPE_CHECKING, Any

from capture_analysis.discovery import classes_of
from pydantic import create_model

from twoway import links
from twoway.links.element import Element, Link, Part


@cache
def elements() -> dict[str, type[Element]]:
    """List the elements by their field of a direction."""
    return {each.FIELD: each for each in classes_of(links, Element)}


def pages() -> dict[str, str]:
    """List the titles of the parts of links by field: the elements, and what both ends share."""
    return {each.FIELD: each.TITLE for each in classes_of(links, Part)}


# mypy does not know computed fields.
if TYPE_CHECKING:
    Direction = Link
else:
    _FIELDS: dict[str, Any] = {name: kind.field() for name, kind in elements().items()}
    Direction = create_model(
        "Direction",
        __base__=Link,
        __module__=__name__,
        __doc__="One direction of a link: rate and queue at one hop, delay at another.",
        **_FIELDS,
    )
    Direction.KINDS = elements()
