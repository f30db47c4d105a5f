"""One direction of a link with a field for each element, in profiles and manifests alike."""

from typing import TYPE_CHECKING, Any

from pydantic import create_model

from twoway.links.element import Link
from twoway.links.registry import elements

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
