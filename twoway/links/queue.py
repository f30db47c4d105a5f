"""A queue in tc's own words: any qdisc of the kernel, or a tree of them, inside any shaper."""

from typing import Annotated, Any, ClassVar

from pydantic import BeforeValidator, Field

from twoway.links.element import Link, ManagedQueue, Setting
from twoway.links.queue_limit import QueueLimit
from twoway.links.shaper import INSIDE
from twoway.links.tc_words import TcWords, in_words


class TcQueue(TcWords, ManagedQueue):
    """A qdisc of the guest's kernel in place of a drop-tail queue."""

    FIELD: ClassVar = "queue"
    TITLE: ClassVar = "A queue in tc's words"
    DESCRIPTION: ClassVar = (
        "any qdisc of the guest's kernel, or a tree of qdiscs, classes and filters, in tc's own "
        "words; its own limit holds, and not queue_packets, unless queue_limit changes it. HTB "
        "keeps a rate_mbit outside"
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

    @property
    def why_no_limit(self) -> str:
        """The reason why `limited` lists none, after "and"."""
        return "tc's words must have one that Linux can change, as `pfifo limit 100`"

    def put_inside(self, dev: str, link: Link) -> tuple[str, ...]:
        """Build the tree, which a shaper asks for packets, with the limit of a schedule."""
        changes = link.elements.contains(QueueLimit)
        tree = self.change_limit(link.queue_packets)[0] if changes else self
        return (f"qdisc add dev {dev} {INSIDE} {tree.first}", *tree.tree(dev))

    def limited(self, link: Link) -> tuple[tuple[str, str], ...]:
        """List the qdisc with a limit of packets, if it is the only one."""
        changes = self.change_limit(link.queue_packets)[1]
        only = changes if len(changes) == 1 else []
        return tuple((place or INSIDE, words) for place, words in only)
