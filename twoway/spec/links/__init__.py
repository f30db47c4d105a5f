"""Elements of a link, beyond a rate, a queue and a delay: a file each.

A file's class adds a field to every direction of a link, named by the class's `FIELD`.
"""

import sys
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar

from capture_analysis.discovery import classes_of

from twoway.contract.model import Model

if TYPE_CHECKING:
    from twoway.spec.experiment import Direction


class Element(Model):
    """Something that a link does to packets: the value of a field of a direction.

    Attributes:
        FIELD: the direction's field.
        DESCRIPTION: what the field means, for the schema.
    """

    FIELD: ClassVar[str]
    DESCRIPTION: ClassVar[str]

    @property
    def model(self) -> Any:
        """What theories know of it: by default the field's value as a mapping."""
        return self.model_dump()

    def problems(self, direction: "Direction") -> list[str]:  # noqa: ARG002 - for subclasses
        """List contradictions with the direction, each after the field: ": ..." or ".x: ..."."""
        return []

    def frame_problems(self, frame_bytes: int) -> list[str]:  # noqa: ARG002 - likewise
        """List what a full frame of an experiment does not allow, each after the field."""
        return []

    def lines_before_queue(self, dev: str) -> tuple[str, ...]:  # noqa: ARG002 - likewise
        """List the tc batch lines that put it before an interface's queue."""
        return ()


@cache
def elements() -> dict[str, type[Element]]:
    """List the elements by their field of a direction."""
    return {element.FIELD: element for element in classes_of(sys.modules[__name__], Element)}
