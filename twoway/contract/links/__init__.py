"""Elements of a link besides rate, queue and delay: their fields and meanings.

A file's class adds a field to every direction of a link, named by the class's `FIELD`. Code that
reads a link finds an element by its class. `twoway/description/links` has tc's words for each.
"""

from typing import Any, ClassVar, Self, TypeVar

from pydantic import Field

from twoway.contract.model import Model

_Kind = TypeVar("_Kind")


class Element(Model):
    """One element of a link, made from the value of a direction's field.

    Attributes:
        FIELD: the direction's field.
        TITLE: the title of its page on the site.
        DESCRIPTION: what the field means, for the schema.
        LOSES: True if it loses packets behind the queue, which no capture of the queue shows.
        KEEPS_SPACING: True if packets arrive with the spacing with which they leave the queue.
    """

    FIELD: ClassVar[str]
    TITLE: ClassVar[str]
    DESCRIPTION: ClassVar[str]
    LOSES: ClassVar[bool] = False
    KEEPS_SPACING: ClassVar[bool] = True

    @classmethod
    def field(cls) -> tuple[Any, Any]:
        """Return the type and the default of the direction's field."""
        return cls | None, Field(default=None, description=cls.DESCRIPTION)

    @classmethod
    def of(cls, value: Any) -> Self | None:
        """Make the element of a field's value; None if it has none."""
        found: Self | None = value
        return found


class RatedQueue(Element):
    """A queue with its own rate, in place of rate_mbit."""

    @property
    def start_mbit(self) -> float:
        """The rate at the start of traffic, Mbit/s; the mean rate for a trace."""
        raise NotImplementedError

    @property
    def least_mbit(self) -> float:
        """The lowest rate, Mbit/s."""
        raise NotImplementedError

    @property
    def most_mbit(self) -> float:
        """The highest rate, Mbit/s."""
        raise NotImplementedError


class ManagedQueue(Element):
    """Queues that keep rate_mbit and are chosen by a word; the usual word means a drop-tail queue.

    Attributes:
        WORDS: the type of the field's value.
        USUAL: the word for the absence of such an element.
        word: the field's value.
    """

    WORDS: ClassVar[Any]
    USUAL: ClassVar[str]

    word: str

    @classmethod
    def field(cls) -> tuple[Any, Any]:
        """Return the type and the default of the direction's field."""
        return cls.WORDS, Field(default=cls.USUAL, description=cls.DESCRIPTION)

    @classmethod
    def of(cls, value: Any) -> Self | None:
        """Make the element of a field's value; None if it has none."""
        return None if value == cls.USUAL else cls(word=value)


class Delay(Element):
    """A propagation delay in place of delay_ms."""

    KEEPS_SPACING: ClassVar = False

    @property
    def longest_ns(self) -> int:
        """The longest delay."""
        raise NotImplementedError


class BehindQueue(Element):
    """An element that acts on packets behind the queue, where the delay is.

    Each such class sets LOSES and KEEPS_SPACING itself.
    """


class Elements(tuple[Element, ...]):
    """All other elements of a link."""

    __slots__ = ()

    @property
    def lose(self) -> bool:
        """True if one of them loses packets behind the queue."""
        return any(element.LOSES for element in self)

    @property
    def keep_spacing(self) -> bool:
        """True if all of them keep the spacing with which packets leave the queue."""
        return all(element.KEEPS_SPACING for element in self)

    def find(self, kind: type[_Kind]) -> _Kind | None:
        """Find the element of a kind, if there is one.

        Raises: ValueError if there are several: one answer would leave the others out.
        """
        found = [element for element in self if isinstance(element, kind)]
        if len(found) > 1:
            raise ValueError(f"{kind.__name__}: {len(found)} elements, and at most one is possible")
        return found[0] if found else None

    def has(self, *kinds: type) -> bool:
        """Tell whether there is an element of one of these kinds."""
        return any(isinstance(element, kinds) for element in self)
