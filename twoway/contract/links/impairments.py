"""Effects of a link on packets behind its queue besides loss: jitter, copies, overtaking."""

from typing import Annotated, ClassVar

from pydantic import Field

from twoway.contract.links import BehindQueue

Percent = Annotated[float, Field(ge=0, le=50)]


class Impairments(BehindQueue):
    """Effects of netem on each packet at the delay's hop."""

    FIELD: ClassVar = "impairments"
    TITLE: ClassVar = "Jitter, reordering, copies"
    DESCRIPTION: ClassVar = "jitter, reordering and copies after the queue; none by default"
    LOSES: ClassVar = False
    KEEPS_SPACING: ClassVar = False

    jitter_ms: Annotated[float, Field(ge=0, le=1000)] = Field(
        default=0,
        description="the delay is uniform between delay_ms minus and plus this",
    )
    jitter_reorders: bool = Field(
        default=False, description="a packet with a shorter delay overtakes; else it waits its turn"
    )
    reorder_percent: Percent = Field(
        default=0, description="share of packets that arrive at once, without the delay, %"
    )
    duplicate_percent: Percent = Field(
        default=0, description="share of packets that arrive twice, %"
    )

    @property
    def jitter_ns(self) -> int:
        """The largest deviation of the delay, ns."""
        return round(self.jitter_ms * 1e6)

    @property
    def keeps_order(self) -> bool:
        """True if netem needs a rate in order to keep packets in order."""
        return bool(self.jitter_ms) and not self.jitter_reorders
