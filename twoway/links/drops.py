"""Random drops by an action before the delay, each packet alone."""

from collections.abc import Mapping
from typing import Annotated, ClassVar

from pydantic import Field

from twoway.links.element import BehindQueue, Link
from twoway.links.loss import Loss
from twoway.links.shaper import egress_action


class Drops(BehindQueue):
    """Packets that an action of the kernel drops at random, after the queue."""

    FIELD: ClassVar = "drops"
    TITLE: ClassVar = "Drops by an action"
    DESCRIPTION: ClassVar = (
        "packets that an action drops at random after the queue; none by default"
    )
    LOSES: ClassVar = True
    KEEPS_SPACING: ClassVar = True

    one_in: Annotated[int, Field(ge=2, le=10_000)] = Field(
        description="each packet is dropped with a probability of one in this number"
    )

    def link_problems(self, link: Link, pools: Mapping[str, int]) -> list[str]:
        """Refuse a second element that loses packets: an interface has one action."""
        del pools
        return [": a link loses packets in one way, got loss"] if link.elements.has(Loss) else []

    def lines(self, dev: str) -> tuple[str, ...]:
        """Build an action before the delay."""
        return egress_action(dev, f"gact pass random netrand drop {self.one_in}")
