"""tc's words for jitter, copies and overtaking."""

from typing import TYPE_CHECKING

from twoway.contract.links import impairments
from twoway.description.links import BehindQueue, shares_read, six_digits
from twoway.description.shaper import Readback

if TYPE_CHECKING:
    from twoway.description.experiment import Direction, Profile

# With a rate, netem keeps packets in order; at this rate a packet takes less than 1 ns.
_ORDER = "rate 100tbit"


class Impairments(impairments.Impairments, BehindQueue):
    """Effects of netem on packets besides loss."""

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

    def link_problems(self, direction: "Direction", profile: "Profile") -> list[str]:
        """List contradictions with the direction's delay."""
        del profile
        found, delay_ns = [], direction.delay_ns
        if self.jitter_ns > delay_ns:
            found.append(
                f".jitter_ms: must not exceed delay_ms ({delay_ns / 1e6:g}), got {self.jitter_ms:g}"
            )
        if self.reorder_percent and not delay_ns:
            found.append(".reorder_percent: needs a delay, got delay_ms of 0")
        return found

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
