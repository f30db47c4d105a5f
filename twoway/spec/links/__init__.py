"""Elements of a link, beyond a rate, a queue and a delay: a file each.

A file's class adds a field to every direction of a link, named by the class's `FIELD`. Its base
says where on the link it acts: before the queue, as the queue, as the delay, or behind the queue.
"""

import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

from capture_analysis.discovery import classes_of
from pydantic import Field

from twoway.contract.model import Model
from twoway.spec.graph import Interface
from twoway.spec.shaper import Readback, Shaper

if TYPE_CHECKING:
    from twoway.spec.experiment import Direction, Profile


class Element(Model):
    """Something that a link does to packets, by the value of a field of a direction.

    Attributes:
        FIELD: the direction's field.
        DESCRIPTION: what the field means, for the schema.
    """

    FIELD: ClassVar[str]
    DESCRIPTION: ClassVar[str]

    @classmethod
    def field(cls) -> tuple[Any, Any]:
        """Return the type and the default of the direction's field."""
        return cls | None, Field(default=None, description=cls.DESCRIPTION)

    @classmethod
    def of(cls, value: Any) -> Self | None:
        """Make the element of a field's value; None if it has none."""
        found: Self | None = value
        return found

    def read(self, folder: Path) -> Self:  # noqa: ARG002 - for subclasses
        """Read the files that it names, from its profile's folder.

        Raises: ValueError with a sentence after the field that names the file, as ".x: ...".
        """
        return self

    def problems(self, direction: "Direction", profile: "Profile") -> list[str]:  # noqa: ARG002
        """List contradictions, each after the field: ": ..." or ".x: ..."."""
        return []

    def frame_problems(self, frame_bytes: int) -> list[str]:  # noqa: ARG002 - for subclasses
        """List what a full frame of an experiment does not allow, each after the field."""
        return []

    def model(self, profile: "Profile") -> Any:  # noqa: ARG002 - for subclasses
        """Return what theories know of it: by default the field's value as a mapping."""
        return self.model_dump()


class BeforeQueue(Element):
    """Something before the queue of an interface."""

    def lines(self, dev: str) -> tuple[str, ...]:
        """List the tc batch lines that add it to an interface."""
        raise NotImplementedError


class Queue(Element):
    """A queue instead of a drop-tail one of a rate_mbit."""

    @property
    def leaves_at_start(self) -> bool:
        """True if packets leave at the begin of transmission, not its end.

        cake and HTB do so, netem and dtm do not (docs/decisions/0021).
        """
        return False

    @property
    def is_under_htb(self) -> bool:
        """True if HTB keeps the rate."""
        return False

    def shaper(self, interface: Interface, direction: "Direction") -> Shaper:
        """Build the root qdisc of the queue's interface."""
        raise NotImplementedError


class RatedQueue(Queue):
    """A queue with a rate of its own, instead of a rate_mbit."""

    @property
    def start_mbit(self) -> float:
        """The rate at the start of traffic, of a trace its mean, Mbit/s."""
        raise NotImplementedError

    @property
    def least_mbit(self) -> float:
        """The lowest rate, Mbit/s."""
        raise NotImplementedError

    @property
    def most_mbit(self) -> float:
        """The highest rate, Mbit/s."""
        raise NotImplementedError


class ManagedQueue(Queue):
    """Queues of a rate_mbit that a word names; a usual one stands for a drop-tail queue.

    Attributes:
        WORDS: the type of the field's value.
        USUAL: the word by which there is no such element.
        word: the field's value.
    """

    WORDS: ClassVar[Any]
    USUAL: ClassVar[str]

    word: str

    @property
    def leaves_at_start(self) -> bool:
        """True: cake and HTB do so."""
        return True

    @property
    def is_under_htb(self) -> bool:
        """True if HTB keeps the rate."""
        return True

    @classmethod
    def field(cls) -> tuple[Any, Any]:
        """Return the type and the default of the direction's field."""
        return cls.WORDS, Field(default=cls.USUAL, description=cls.DESCRIPTION)

    @classmethod
    def of(cls, value: Any) -> Self | None:
        """Make the element of a field's value; None if it has none."""
        return None if value == cls.USUAL else cls(word=value)


class Delay(Element):
    """A propagation delay instead of a delay_ms."""

    @property
    def longest_ns(self) -> int:
        """The longest delay."""
        raise NotImplementedError

    def shaper(self, interface: Interface, limit: int) -> Shaper:
        """Build the root qdisc of the delay's interface, for a limit of packets."""
        raise NotImplementedError


class BehindQueue(Element):
    """Something that the netem of the delay does, too."""

    @property
    def arguments(self) -> tuple[str, ...]:
        """The arguments of netem behind those of its delay."""
        raise NotImplementedError

    def readback(self) -> Readback:
        """List what `tc -j qdisc show` must print of them."""
        raise NotImplementedError


@cache
def elements() -> dict[str, type[Element]]:
    """List the elements by their field of a direction."""
    return {element.FIELD: element for element in classes_of(sys.modules[__name__], Element)}
