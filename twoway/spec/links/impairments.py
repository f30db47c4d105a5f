"""What a link does to packets behind its queue besides losing them: jitter, copies, overtaking."""

from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import Field

from twoway.spec.links import BehindQueue

if TYPE_CHECKING:
    from twoway.spec.experiment import Direction, Profile

Percent = Annotated[float, Field(ge=0, le=50)]
# A rate at which a packet takes less than a ns: netem keeps the order of packets that have a rate.
_ORDER = "rate 100tbit"


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

    @property
    def arguments(self) -> tuple[str, ...]:
        """The arguments of netem behind those of its delay."""
        jitter = f"{self.jitter_ns // 1000}us" if self.jitter_ms else ""
        reorder = f"reorder {self.reorder_percent:.9g}%" if self.reorder_percent else ""
        copies = f"duplicate {self.duplicate_percent:.9g}%" if self.duplicate_percent else ""
        order = _ORDER if self.keeps_order else ""
        return tuple(f"{jitter} {reorder} {copies} {order}".split())

    def readback(self) -> tuple[tuple[tuple[str, ...], float], ...]:
        """List what `tc -j qdisc show` must print: paths, and values of six digits."""
        shares = {"reorder": self.reorder_percent, "duplicate": self.duplicate_percent}
        return (
            (("options", "delay", "jitter"), float(f"{self.jitter_ns / 1e9:.6g}")),
            *(
                (("options", name, name), float(f"{percent / 100:.6g}"))
                for name, percent in shares.items()
                if percent
            ),
        )

    def problems(self, direction: "Direction", profile: "Profile") -> list[str]:
        """List contradictions between fields, and with the direction's delay."""
        del profile
        found, delay_ns = [], direction.delay_ns
        if self.jitter_ns > delay_ns:
            found.append(
                f".jitter_ms: must not exceed delay_ms ({delay_ns / 1e6:g}), got {self.jitter_ms:g}"
            )
        if self.jitter_ns % 8000:
            found.append(f".jitter_ms: exact for multiples of 0.008 only, got {self.jitter_ms:g}")
        if self.jitter_reorders and not self.jitter_ms:
            found.append(".jitter_reorders: needs jitter_ms, got true")
        if self.reorder_percent and self.keeps_order:
            found.append(".reorder_percent: jitter that keeps the order allows none")
        if self.reorder_percent and not delay_ns:
            found.append(".reorder_percent: needs a delay, got delay_ms of 0")
        return found
