"""tc's words for a policer."""

from typing import TYPE_CHECKING

from twoway.contract.links import policer
from twoway.contract.network import ETHERNET_BYTES
from twoway.description.links import BeforeQueue, egress_action

if TYPE_CHECKING:
    from twoway.description.experiment import Experiment

# tc gives the kernel the bucket's size as 32 bits of ticks of 64 ns.
_MOST_BURST_S = 274


class Policer(policer.Policer, BeforeQueue):
    """A token bucket in front of a queue."""

    def problems(self) -> list[str]:
        """List contradictions between fields."""
        if self.bucket.burst_ns <= _MOST_BURST_S * 1e9:
            return []
        most = int(_MOST_BURST_S * self.bucket.rate_bit / 8)
        return [
            f".burst_bytes: at most {_MOST_BURST_S} s of tokens ({most}), got {self.burst_bytes}"
        ]

    def setting_problems(self, experiment: "Experiment") -> list[str]:
        """Refuse a bucket that never holds a full frame."""
        frame_bytes = experiment.stack.mtu_bytes + ETHERNET_BYTES
        if self.burst_bytes >= frame_bytes:
            return []
        return [f".burst_bytes: a full frame has {frame_bytes}, got {self.burst_bytes}"]

    def lines(self, dev: str) -> tuple[str, ...]:
        """Build an egress action of the interface, which acts before its queue."""
        # By default police refuses packets longer than 2047 bytes.
        police = f"police rate {self.bucket.rate_bit}bit burst {self.burst_bytes} mtu 65535"
        return egress_action(dev, f"{police} conform-exceed drop/pass")
