"""tc's words for losses: netem's, or those of an action that counts, before it."""

from typing import TYPE_CHECKING

from twoway.contract.links import loss
from twoway.spec.links import BehindQueue

if TYPE_CHECKING:
    from twoway.spec.experiment import Direction, Profile


class Loss(loss.Loss, BehindQueue):
    """How the kernel loses packets."""

    def problems(self, direction: "Direction", profile: "Profile") -> list[str]:
        """List contradictions between fields."""
        del direction, profile
        found = []
        if bool(self.percent) == bool(self.every):
            got = "both" if self.every else "none"
            found.append(f": takes one of percent and every; got {got}")
        if self.every and self.burst_packets:
            found.append(f".burst_packets: needs percent, got {self.burst_packets:g}")
        return found

    @property
    def has_one_delay(self) -> bool:
        """True if it counts: the packets of one queue, at one place."""
        return self.every is not None

    @property
    def arguments(self) -> tuple[str, ...]:
        """The arguments of netem."""
        if self.every:
            return ()
        if self.burst_packets is None:
            return ("loss", "random", f"{self.percent:.9g}%")
        enter, leave = self.chances()
        return ("loss", "gemodel", f"{100 * enter:.9g}%", f"{100 * leave:.9g}%")

    def readback(self) -> tuple[tuple[tuple[str, ...], float], ...]:
        """List what `tc -j qdisc show` must print: paths, and values of six digits."""
        if self.every:
            return ()
        if self.burst_packets is None:
            kind, values = "loss-random", {"loss": self.share}
        else:
            enter, leave = self.chances()
            kind, values = "loss-gemodel", {"p": enter, "r": leave, "1-h": 1, "1-k": 0}
        return tuple(
            (("options", kind, name), float(f"{value:.6g}")) for name, value in values.items()
        )

    def lines(self, dev: str) -> tuple[str, ...]:
        """Build an action that drops by count, before the delay."""
        if not self.every:
            return ()
        drop = f"action gact pass random determ drop {self.every}"
        return (
            f"qdisc add dev {dev} clsact",
            f"filter add dev {dev} egress matchall {drop}",
        )
