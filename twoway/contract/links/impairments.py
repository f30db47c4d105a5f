"""What a link does to packets behind its queue besides losing them: jitter, copies, overtaking."""

from typing import Annotated, ClassVar

from pydantic import Field

from twoway.contract.links import BehindQueue

Percent = Annotated[float, Field(ge=0, le=50)]


class Impairments(BehindQueue):
    """What netem does to packets at the delay's hop, to each by itself."""

    FIELD: ClassVar = "impairments"
    DESCRIPTION: ClassVar = "jitter, reordering and copies after the queue; none by default"

    jitter_ms: Annotated[float, Field(ge=0, le=1000)] = Field(
        default=0,
        description="the delay is uniform from delay_ms less this to delay_ms and this",
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
        """How far the delay may be off, ns."""
        return round(self.jitter_ms * 1e6)

    @property
    def keeps_order(self) -> bool:
        """True if netem must be made to keep the order of packets."""
        return bool(self.jitter_ms) and not self.jitter_reorders
