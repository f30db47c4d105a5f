"""A policer: a token bucket in front of a queue."""

from typing import Annotated

from pydantic import Field

from twoway.contract.model import Model
from twoway.theory.token_bucket import TokenBucket

# tc tells the kernel the bucket's size in ticks of 64 ns, 32 bits of them.
_MOST_BURST_S = 274


class Policer(Model):
    """Packets beyond a token bucket are dropped before the queue; none waits for tokens."""

    rate_mbit: Annotated[float, Field(ge=0.001, le=100_000)] = Field(
        description="rate of the tokens in Mbit/s, of frames with their Ethernet headers"
    )
    burst_bytes: Annotated[int, Field(ge=1, le=1 << 30)] = Field(
        description="what a full bucket lets through at once, bytes of frames"
    )

    @property
    def bucket(self) -> TokenBucket:
        """Round the rate and the burst as the kernel does."""
        return TokenBucket.of(self.rate_mbit, self.burst_bytes)

    def problems(self) -> list[str]:
        """List contradictions, each after its field."""
        if self.bucket.burst_ns <= _MOST_BURST_S * 1e9:
            return []
        most = int(_MOST_BURST_S * self.bucket.rate_bit / 8)
        return [
            f".burst_bytes: at most {_MOST_BURST_S} s of tokens ({most}), got {self.burst_bytes}"
        ]

    def lines(self, dev: str) -> tuple[str, ...]:
        """List the tc batch lines that put it before an interface's queue."""
        # By default it refuses whatever is longer than 2047 bytes.
        police = f"police rate {self.bucket.rate_bit}bit burst {self.burst_bytes} mtu 65535"
        return (
            f"qdisc add dev {dev} clsact",
            f"filter add dev {dev} egress matchall action {police} conform-exceed drop/pass",
        )
