"""tc's words for losses."""

from twoway.contract.links import loss
from twoway.spec.links import BehindQueue


class Loss(loss.Loss, BehindQueue):
    """How netem loses packets."""

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
