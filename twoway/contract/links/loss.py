"""Losses on a link: of single packets, in bursts, of every n-th packet, or by a schedule."""

import math
from functools import cached_property
from typing import Annotated, ClassVar

import numpy as np
from capture_analysis.columns import BoolArray
from pydantic import Field

from twoway.contract.links import BehindQueue
from twoway.contract.timetable import Repeat, Second, Timetable

Percent = Annotated[float, Field(ge=0, le=100, multiple_of=1e-6)]


class Loss(BehindQueue):
    """Losses of a link, after its queue.

    Packets are lost independently, or in bursts: the link alternates between a good state and a bad
    one, in which all packets are lost; each change has a constant probability per packet (Gilbert
    1960). Or losses are deterministic: every n-th packet is lost, as RFC 9438 assumes. With a
    schedule the probability changes at given times after the traffic's start; before it, the first
    one holds.
    """

    FIELD: ClassVar = "loss"
    TITLE: ClassVar = "Losses"
    DESCRIPTION: ClassVar = "packets that the link loses, after its queue; none by default"
    LOSES: ClassVar = True
    KEEPS_SPACING: ClassVar = True

    percent: Annotated[float, Field(gt=0, le=100)] | None = Field(
        default=None, description="share of packets, %"
    )
    every: Annotated[int, Field(ge=2, le=10_000)] | None = Field(
        default=None,
        description="instead of percent: every packet with this number is lost, by count",
    )
    burst_packets: Annotated[float, Field(ge=1, le=10_000)] | None = Field(
        default=None,
        description="mean length of a burst of losses; without it losses are independent",
    )
    schedule: (
        Annotated[list[tuple[Second, Percent]], Field(min_length=1, max_length=1000)] | None
    ) = Field(
        default=None,
        description="instead of percent: [s, %] in order, the first at 0; 100 is an outage",
    )
    repeat_s: Repeat | None = Field(
        default=None,
        description="time after which the schedule starts again; without it the last share stays",
    )

    @property
    def share(self) -> float:
        """The share of lost packets; 0 if it follows a schedule."""
        return 1 / self.every if self.every else (self.percent or 0) / 100

    @property
    def mean_burst(self) -> float:
        """The mean number of successive lost packets."""
        if self.every or self.burst_packets:
            return self.burst_packets or 1
        return 1 / (1 - self.share) if self.share < 1 else math.inf

    @cached_property
    def table(self) -> Timetable:
        """The schedule; shares in millionths of a percent."""
        rows = [(round(s * 1e9), round(percent * 1e6)) for s, percent in self.schedule or ()]
        return Timetable("shares", tuple(rows), round((self.repeat_s or 0) * 1e9))

    def counted_out(self, packets: int) -> BoolArray:
        """Mark the packets that a loss by count drops, in order; shape (packets,)."""
        number = np.arange(1, packets + 1)
        return number % self.every == 0 if self.every else np.zeros(packets, dtype=bool)

    def chances(self) -> tuple[float, float]:
        """Compute the probabilities per packet that a burst begins, and that it ends.

        With the share p of packets lost and the mean length b of a burst: leave = 1 / b, and p =
        enter / (enter + leave).
        """
        assert self.burst_packets is not None
        leave = 1 / self.burst_packets
        return leave * self.share / (1 - self.share), leave
