"""Packets that a link loses: each by itself, or in bursts."""

from typing import Annotated, ClassVar

from pydantic import Field

from twoway.spec.links import BehindQueue


class Loss(BehindQueue):
    """How a link loses packets, after its queue.

    Each packet by itself, or in bursts: the link goes from a good state to a bad one, in which all
    packets are lost, and back, each with a constant chance per packet (Gilbert 1960).
    """

    FIELD: ClassVar = "loss"
    DESCRIPTION: ClassVar = "packets that the link loses, after its queue; none by default"

    percent: Annotated[float, Field(gt=0, le=50)] = Field(description="share of packets, %")
    burst_packets: Annotated[float, Field(ge=1, le=10_000)] | None = Field(
        default=None,
        description="mean length of a burst of losses; without it each packet is lost by itself",
    )

    @property
    def arguments(self) -> tuple[str, ...]:
        """The arguments of netem."""
        if self.burst_packets is None:
            return ("loss", "random", f"{self.percent:.9g}%")
        enter, leave = self.chances()
        return ("loss", "gemodel", f"{100 * enter:.9g}%", f"{100 * leave:.9g}%")

    def readback(self) -> tuple[tuple[tuple[str, ...], float], ...]:
        """List what `tc -j qdisc show` must print: paths, and values of six digits."""
        if self.burst_packets is None:
            kind, values = "loss-random", {"loss": self.percent / 100}
        else:
            enter, leave = self.chances()
            kind, values = "loss-gemodel", {"p": enter, "r": leave, "1-h": 1, "1-k": 0}
        return tuple(
            (("options", kind, name), float(f"{value:.6g}")) for name, value in values.items()
        )

    def chances(self) -> tuple[float, float]:
        """Compute the chances per packet that a burst begins, and that it ends.

        From the share p of packets lost and the mean length b: leave = 1 / b, and
        p = enter / (enter + leave).
        """
        assert self.burst_packets is not None
        leave, share = 1 / self.burst_packets, self.percent / 100
        return leave * share / (1 - share), leave
