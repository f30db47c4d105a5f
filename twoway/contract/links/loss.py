"""Packets that a link loses: each by itself, in bursts, one in a number, or by a schedule."""

from functools import cached_property
from typing import Annotated, ClassVar

import numpy as np
from capture_analysis.columns import BoolArray
from pydantic import Field

from twoway.contract.links import BehindQueue
from twoway.contract.timetable import Repeat, Second, Timetable

Percent = Annotated[float, Field(ge=0, le=100, multiple_of=1e-6)]


class Loss(BehindQueue):
    """How a link loses packets, after its queue.

    Each packet by itself, or in bursts: the link goes from a good state to a bad one, in which all
    packets are lost, and back, each with a constant chance per packet (Gilbert 1960). Or no chance
    is in it: a packet of a number is lost, as RFC 9438 assumes. By a schedule the chance changes at
    given times after the traffic's start; before it, the first holds.
    """

    FIELD: ClassVar = "loss"
    DESCRIPTION: ClassVar = "packets that the link loses, after its queue; none by default"

    percent: Annotated[float, Field(gt=0, le=50)] | None = Field(
        default=None, description="share of packets, %"
    )
    every: Annotated[int, Field(ge=2, le=10_000)] | None = Field(
        default=None,
        description="instead of percent: one packet in this number is lost, by count",
    )
    burst_packets: Annotated[float, Field(ge=1, le=10_000)] | None = Field(
        default=None,
        description="mean length of a burst of losses; without it each packet is lost by itself",
    )
    schedule: (
        Annotated[list[tuple[Second, Percent]], Field(min_length=1, max_length=1000)] | None
    ) = Field(
        default=None,
        description="instead of percent: [s, %] in order, the first at 0; 100 is an outage",
    )
    repeat_s: Repeat | None = Field(
        default=None, description="the schedule starts again after it; else its last share lasts"
    )

    @property
    def share(self) -> float:
        """The share of packets that are lost; 0 if it changes."""
        return 1 / self.every if self.every else (self.percent or 0) / 100

    @property
    def mean_burst(self) -> float:
        """The mean number of packets that are lost one after the other."""
        return 1 if self.every else self.burst_packets or 1 / (1 - self.share)

    @cached_property
    def table(self) -> Timetable:
        """The schedule; shares in millionths of a percent."""
        rows = [(round(s * 1e9), round(percent * 1e6)) for s, percent in self.schedule or ()]
        return Timetable("shares", tuple(rows), round((self.repeat_s or 0) * 1e9))

    def counted_out(self, packets: int) -> BoolArray:
        """Mark which of some packets, in their order, are lost by count; shape (packets,)."""
        number = np.arange(1, packets + 1)
        return number % self.every == 0 if self.every else np.zeros(packets, dtype=bool)

    def chances(self) -> tuple[float, float]:
        """Compute the chances per packet that a burst begins, and that it ends.

        From the share p of packets lost and the mean length b: leave = 1 / b, and
        p = enter / (enter + leave).
        """
        assert self.burst_packets is not None
        leave = 1 / self.burst_packets
        return leave * self.share / (1 - self.share), leave
