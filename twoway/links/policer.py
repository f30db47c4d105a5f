"""A policer: the kernel's token bucket (net/sched/act_police.c), in its own integers.

Tokens are nanoseconds of sending: the bucket gains one each ns and holds at most `burst_ns`. A
packet needs the transmission time of its frame in tokens, and is refused if the bucket has fewer.
"""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from capture_analysis.columns import BoolArray, IntArray
from pydantic import Field

from twoway.contract.network import ETHERNET_BYTES
from twoway.links.element import BeforeQueue, Setting

# tc counts times for the kernel in ticks of 64 ns.
_TICK_NS = 64
# tc gives the kernel the bucket's size as 32 bits of such ticks.
_MOST_BURST_S = 274


@dataclass(frozen=True)
class TokenBucket:
    """A token bucket: its rate and its size.

    Attributes:
        rate_bit: rate of the tokens, bit/s, a multiple of 8.
        burst_bytes: the most bytes that a full bucket passes at once.
    """

    rate_bit: int
    burst_bytes: int

    @property
    def burst_ns(self) -> int:
        """The most tokens, as tc computes them."""
        usec = 1e6 * (self.burst_bytes / (self.rate_bit / 8))
        return int(usec * 1000 / _TICK_NS) * _TICK_NS

    def needs_ns(self, frame_bytes: int) -> int:
        """Tokens that a frame needs, Ethernet header included, as psched_l2t_ns computes them."""
        rate, factor, shift = self.rate_bit // 8, 1_000_000_000, 0
        while not (factor // rate) & (1 << 31) and not factor & (1 << 63):
            factor, shift = factor << 1, shift + 1
        return frame_bytes * (factor // rate) >> shift

    def refuses(self, time_ns: IntArray, frame_bytes: IntArray) -> BoolArray:
        """Mark the frames that a bucket refuses; the bucket is full before the first.

        Args:
            time_ns: shape (n,), arrival of the frames, ascending.
            frame_bytes: shape (n,), Ethernet header included.
        """
        needs = {int(size): self.needs_ns(int(size)) for size in np.unique(frame_bytes)}
        tokens = most = self.burst_ns
        last, refused = 0, np.zeros(len(frame_bytes), dtype=bool)
        for row, (now, size) in enumerate(zip(time_ns.tolist(), frame_bytes.tolist(), strict=True)):
            left = min(tokens + min(now - last, most), most) - needs[size]
            if left < 0:
                refused[row] = True
            else:
                tokens, last = left, now
        return refused


class Policer(BeforeQueue):
    """A policer: packets beyond a token bucket are dropped before the queue, without waiting."""

    FIELD: ClassVar = "policer"
    TITLE: ClassVar = "A policer"
    DESCRIPTION: ClassVar = "a token bucket before the queue; none by default"

    rate_mbit: Annotated[float, Field(ge=0.001, le=100_000)] = Field(
        description="rate of the tokens in Mbit/s, of frames with their Ethernet headers"
    )
    burst_bytes: Annotated[int, Field(ge=1, le=1 << 30)] = Field(
        description="size of the bucket, bytes of frames"
    )

    @property
    def bucket(self) -> TokenBucket:
        """The bucket that the kernel has for these values: it counts whole bytes a second."""
        return TokenBucket(round(self.rate_mbit * 1e6 / 8) * 8, self.burst_bytes)

    def refuses(self, time_ns: IntArray, frame_bytes: IntArray) -> BoolArray:
        """Mark the frames that the bucket refuses."""
        return self.bucket.refuses(time_ns, frame_bytes)

    def problems(self) -> list[str]:
        """List contradictions between fields."""
        if self.bucket.burst_ns <= _MOST_BURST_S * 1e9:
            return []
        most = int(_MOST_BURST_S * self.bucket.rate_bit / 8)
        return [
            f".burst_bytes: at most {_MOST_BURST_S} s of tokens ({most}), got {self.burst_bytes}"
        ]

    def setting_problems(self, setting: Setting) -> list[str]:
        """Refuse a bucket that never holds a full frame."""
        frame_bytes = setting.mtu_bytes + ETHERNET_BYTES
        if self.burst_bytes >= frame_bytes:
            return []
        return [f".burst_bytes: a full frame has {frame_bytes}, got {self.burst_bytes}"]

    @property
    def police(self) -> str:
        """The action of the interface, which acts before its queue."""
        # By default police refuses packets longer than 2047 bytes.
        return f"police rate {self.bucket.rate_bit}bit burst {self.burst_bytes} mtu 65535"
