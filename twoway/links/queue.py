"""A queue in tc's own words: any qdisc of the kernel, or a tree of them, inside any shaper."""

from typing import Annotated, Any, ClassVar

from pydantic import BeforeValidator, Field

from twoway.links.element import Link, ManagedQueue, Setting
from twoway.links.tc_words import TcWords, in_words


class TcQueue(TcWords, ManagedQueue):
    """A qdisc of the guest's kernel in place of a drop-tail queue."""

    FIELD: ClassVar = "queue"
    TITLE: ClassVar = "A queue in tc's words"
    DESCRIPTION: ClassVar = (
        "any qdisc of the guest's kernel, or a tree of qdiscs, classes and filters, in tc's own "
        "words; its own limit holds, and not queue_packets. HTB keeps a rate_mbit outside"
    )

    @classmethod
    def field(cls) -> tuple[Any, Any]:
        """Return the type and the default of the direction's field; a string is tc's words."""
        words = BeforeValidator(in_words, json_schema_input_type=cls | str)
        return Annotated[cls | None, words], Field(default=None, description=cls.DESCRIPTION)

    @property
    def name(self) -> str:
        """The outer qdisc's name."""
        return self.kind

    @property
    def holds_packets(self) -> bool:
        """True if a packet may wait although the link is free."""
        return not self.never_holds

    @property
    def cuts_segments(self) -> bool:
        """True if cake or tbf is in the tree."""
        return not {"cake", "tbf"}.isdisjoint(self.tc.split())

    def setting_problems(self, setting: Setting) -> list[str]:
        """Refuse what the guest's kernel lacks; of other kernels no list is known."""
        lacking = self.name_lacking() if setting.kernel in (None, "guest") else ""
        return [f": {lacking}"] if lacking else []

    def put_inside(self, dev: str, link: Link) -> tuple[str, ...]:  # noqa: ARG002 - as the base class
        """Build the tree, which a shaper asks for packets."""
        return (f"qdisc add dev {dev} parent 1:1 handle 2: {self.first}", *self.tree(dev))
