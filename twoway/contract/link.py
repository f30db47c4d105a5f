"""One direction of a link, as profiles, theories, manifests and measurements have it."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, TypeVar

from pydantic import Field, create_model

from twoway.contract.links import Delay, Element, Elements, RatedQueue
from twoway.contract.links.registry import elements
from twoway.contract.network import Framing

_Base = TypeVar("_Base", bound="Link")


class Link(Framing):
    """Rate, queue and delay of one direction of a link.

    Attributes:
        KINDS: the other elements of a link, by field.
    """

    KINDS: ClassVar[Mapping[str, type[Element]]] = {}

    rate_mbit: Annotated[float, Field(ge=0.001, le=100_000)] | None = Field(
        default=None,
        description="link rate in Mbit/s (10^6 bit/s), unless it changes or is a dtm channel",
    )
    queue_packets: Annotated[int, Field(ge=1, le=10_000_000)] = Field(
        description="drop-tail limit in packets, the one in service included"
    )
    ecn: bool = Field(
        default=False,
        description="the queue's manager marks packets of flows with stack.ecn, instead "
        "of dropping "
        "them",
    )
    mark_above_ms: Annotated[float, Field(ge=0, le=1000)] = Field(
        default=0,
        description="codel and fq_codel also mark each packet of flows with stack.ecn that waited "
        "longer than this, as DCTCP expects; 0: none",
    )
    delay_ms: Annotated[float, Field(ge=0, le=274_000)] | None = Field(
        default=None,
        description="propagation delay in ms, from the end of transmission to arrival, unless it "
        "changes; netem's, up to 274 s",
    )

    @property
    def elements(self) -> Elements:
        """The link's other elements, in the order of its fields."""
        found = (kind.of(getattr(self, name)) for name, kind in self.KINDS.items())
        return Elements(element for element in found if element is not None)

    @property
    def delay_ns(self) -> int:
        """Propagation delay, ns; the longest if it changes."""
        if changing := self.elements.find(Delay):
            return changing.longest_ns
        return round((self.delay_ms or 0) * 1e6)

    @property
    def start_mbit(self) -> float:
        """The link's rate at the start of traffic, Mbit/s; the mean rate for a trace."""
        queue = self.elements.find(RatedQueue)
        return queue.start_mbit if queue else self.rate_mbit or 0

    @property
    def least_mbit(self) -> float:
        """The lowest rate that the link may have, Mbit/s."""
        queue = self.elements.find(RatedQueue)
        return queue.least_mbit if queue else self.rate_mbit or 0

    @property
    def most_mbit(self) -> float:
        """The highest rate that the link may have, Mbit/s."""
        queue = self.elements.find(RatedQueue)
        return queue.most_mbit if queue else self.rate_mbit or 0


def with_elements(base: type[_Base], kinds: Mapping[str, type[Element]]) -> type[_Base]:
    """Add a field for each kind of element to a model of links."""
    fields: dict[str, Any] = {name: kind.field() for name, kind in kinds.items()}
    made = create_model(base.__name__, __base__=base, __module__=base.__module__, **fields)
    made.KINDS = kinds
    return made


# mypy does not accept a computed base.
if TYPE_CHECKING:
    _Direction = Link
else:
    _Direction = with_elements(Link, elements())


class Direction(_Direction):
    """One direction of a link: rate and queue at one hop, delay at another."""
