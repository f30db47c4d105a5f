"""Losses on a link: of single packets, in bursts, of every n-th packet, or by a schedule."""

import math
from collections.abc import Iterator
from functools import cached_property
from typing import Annotated, ClassVar, Self

import numpy as np
from capture_analysis.columns import BoolArray
from pydantic import Field

from twoway.links.element import BehindQueue, Setting
from twoway.links.shaper import Readback, egress_action, shares_read
from twoway.links.timetable import (
    Repeat,
    Second,
    Timetable,
    changes_by_command,
    command_problems,
    duration_problems,
)

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

    percent: Annotated[float, Field(ge=0, le=100)] | None = Field(
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

    def problems(self) -> list[str]:
        """List contradictions between fields."""
        found = []
        one_of = ("percent", "every", "schedule")
        given = [name for name in one_of if getattr(self, name) is not None]
        if len(given) != 1:
            got = " and ".join(given) or "none"
            found.append(f": takes one of percent, every and schedule; got {got}")
        if self.burst_packets and self.percent is None:
            found.append(f".burst_packets: needs percent, got {self.burst_packets:g}")
        # Between two bursts at least one packet arrives: enter, of `chances`, is at most 1.
        share, burst = self.share, self.burst_packets or math.inf
        if self.percent and burst * (1 - share) < share:
            found.append(
                f".burst_packets: bursts of {burst:g} cannot lose {self.percent:g} %: a packet "
                "arrives between two bursts"
            )
        if self.repeat_s and not self.schedule:
            found.append(f".repeat_s: needs a schedule, got {self.repeat_s:g}")
        if self.schedule:
            found += command_problems(self.schedule, self.repeat_s)
        return found

    def setting_problems(self, setting: Setting) -> list[str]:
        """Refuse a schedule with more changes than a run can have."""
        return duration_problems(self.schedule or (), self.repeat_s, setting.duration_s)

    @property
    def needs_guest(self) -> bool:
        """True if the loss follows a schedule, which starts with the traffic."""
        return self.schedule is not None

    def changes(self, stop_ns: int) -> Iterator[tuple[int, Self]]:
        """List the later shares of the schedule, each as a loss without a schedule."""
        if self.schedule:
            for at_ns, value in changes_by_command(self.table, stop_ns):
                yield at_ns, self._constant(value / 1e6)

    def _constant(self, percent: float) -> Self:
        return self.model_copy(update={"schedule": None, "repeat_s": None, "percent": percent})

    @property
    def has_one_delay(self) -> bool:
        """True if it counts packets, which must come from one queue, at one place."""
        return self.every is not None

    @property
    def arguments(self) -> tuple[str, ...]:
        """The arguments of netem."""
        if self.schedule:
            return self._constant(self.schedule[0][1]).arguments
        if not self.percent:
            return ()
        if self.burst_packets is None:
            return ("loss", "random", f"{self.percent:.9g}%")
        enter, leave = self.chances()
        return ("loss", "gemodel", f"{100 * enter:.9g}%", f"{100 * leave:.9g}%")

    def readback(self) -> Readback:
        """List what `tc -j qdisc show` must print."""
        if self.schedule:
            return self._constant(self.schedule[0][1]).readback()
        if not self.percent:
            return ()
        if self.burst_packets is None:
            kind, values = "loss-random", {"loss": self.share}
        else:
            enter, leave = self.chances()
            kind, values = "loss-gemodel", {"p": enter, "r": leave, "1-h": 1, "1-k": 0}
        return shares_read(kind, values)

    def lines(self, dev: str) -> tuple[str, ...]:
        """Build an action before the delay that drops every n-th packet."""
        drop = f"gact pass random determ drop {self.every}"
        return egress_action(dev, drop) if self.every else ()
