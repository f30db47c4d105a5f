"""Effects of a link on packets behind its queue besides loss: jitter, copies, overtaking."""

from collections.abc import Mapping
from typing import Annotated, ClassVar

from pydantic import Field

from twoway.links.element import BehindQueue, Delay, Link
from twoway.links.shaper import Readback, shares_read, six_digits

# With a rate, netem keeps packets in order; at this rate a packet takes less than 1 ns.
_ORDER = "rate 100tbit"

Percent = Annotated[float, Field(ge=0, le=50)]


class Impairments(BehindQueue):
    """Effects of netem on each packet at the delay's hop."""

    FIELD: ClassVar = "impairments"
    TITLE: ClassVar = "Jitter, reordering, copies"
    DESCRIPTION: ClassVar = "jitter, reordering and copies after the queue; none by default"
    LOSES: ClassVar = False
    KEEPS_SPACING: ClassVar = False

    jitter_ms: Annotated[float, Field(ge=0, le=1000)] = Field(
        default=0, description="the delay is uniform between delay_ms minus and plus this"
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

    @property
    def arguments(self) -> tuple[str, ...]:
        """The arguments of netem behind those of its delay."""
        jitter = f"{self.jitter_ns // 1000}us" if self.jitter_ms else ""
        reorder = f"reorder {self.reorder_percent:.9g}%" if self.reorder_percent else ""
        copies = f"duplicate {self.duplicate_percent:.9g}%" if self.duplicate_percent else ""
        order = _ORDER if self.keeps_order else ""
        return tuple(f"{jitter} {reorder} {copies} {order}".split())

    def readback(self) -> Readback:
        """List what `tc -j qdisc show` must print."""
        shares = {"reorder": self.reorder_percent, "duplicate": self.duplicate_percent}
        found = six_digits("delay", {"jitter": self.jitter_ns / 1e9})
        for name, percent in shares.items():
            found += shares_read(name, {name: percent / 100}) if percent else ()
        return found

    def link_problems(self, link: Link, pools: Mapping[str, int]) -> list[str]:
        """List contradictions with the link's delay."""
        del pools
        changing = link.elements.find(Delay)
        found, delay_ns = [], changing.shortest_ns if changing else link.delay_ns
        if self.jitter_ns > delay_ns:
            least = "the shortest delay" if changing else "delay_ms"
            found.append(
                f".jitter_ms: must not exceed {least} ({delay_ns / 1e6:g}), got {self.jitter_ms:g}"
            )
        if self.reorder_percent and changing:
            found.append(
                ".reorder_percent: needs delay_ms: with a delay that changes no packet arrives "
                f"at once, got {self.reorder_percent:g}"
            )
        elif self.reorder_percent and not delay_ns:
            found.append(".reorder_percent: needs a delay, got delay_ms of 0")
        return found

    @property
    def least_delay_ns(self) -> int:
        """The delay that netem needs: jitter makes it shorter, too."""
        return self.jitter_ns

    def problems(self) -> list[str]:
        """List contradictions between fields."""
        found = []
        if self.jitter_ns % 8000:
            found.append(f".jitter_ms: exact for multiples of 0.008 only, got {self.jitter_ms:g}")
        if self.jitter_reorders and not self.jitter_ms:
            found.append(".jitter_reorders: needs jitter_ms, got true")
        if self.reorder_percent and self.keeps_order:
            found.append(".reorder_percent: jitter that keeps the order allows none")
        return found
