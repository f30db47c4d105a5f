"""A rate that changes by a table: a schedule, grants, or a mahimahi trace."""

import math
from functools import cached_property
from typing import Annotated, ClassVar

from pydantic import Field

from twoway.contract.links import RatedQueue
from twoway.contract.model import Model
from twoway.contract.timetable import OPPORTUNITY_BYTES, Repeat, Second, Timetable

Mbit = Annotated[float, Field(ge=0, le=100_000)]
Change = tuple[Second, Mbit]
Milliseconds = Annotated[int, Field(ge=0, le=10**8)]
Chance = tuple[Milliseconds, Annotated[int, Field(ge=1, le=10**6)]]
# Enough for a trace of 17 minutes with opportunities each ms.
MOST_STEPS = 1 << 20


class Grants(Model):
    """Periodic permission to send a number of bytes at once, and nothing in between.

    Senders on shared media do so if they collect packets (Wi-Fi's A-MPDU) or ask first (DOCSIS).
    """

    every_ms: Annotated[float, Field(gt=0, le=10_000, multiple_of=1e-6)] = Field(
        description="time between two grants, ms; the first is at the traffic's start"
    )
    bytes: Annotated[int, Field(ge=40, le=1 << 16)] = Field(
        description="bytes that one grant may carry; a larger packet waits for several grants "
        "together"
    )

    @property
    def table(self) -> Timetable:
        """The table, whose lap has as many grants as a packet of the largest size needs."""
        every_ns, count = round(self.every_ms * 1e6), math.ceil(OPPORTUNITY_BYTES / self.bytes)
        steps = tuple((n * every_ns, self.bytes) for n in range(count))
        return Timetable("opportunities", steps, count * every_ns)


class Rate(RatedQueue):
    """A rate that changes at given times, or opportunities to send, by grants or a trace.

    The table starts with the traffic. Before that the first rate holds, or the trace repeats.
    """

    FIELD: ClassVar = "rate"
    TITLE: ClassVar = "A rate that changes"
    DESCRIPTION: ClassVar = "a rate that changes by a schedule or a trace, instead of rate_mbit"

    schedule: Annotated[list[Change], Field(min_length=1, max_length=100_000)] | None = Field(
        default=None, description="[s, Mbit/s] in order, the first at 0; a rate of 0 is an outage"
    )
    repeat_s: Repeat | None = Field(
        default=None,
        description="time after which the schedule starts again; without it the last rate stays",
    )
    mahimahi: Annotated[str, Field(min_length=1, max_length=256)] | None = Field(
        default=None,
        description="a trace's file, beside the profile: a line for each opportunity to send "
        f"{OPPORTUNITY_BYTES} bytes, with its time in ms; after the last it starts again",
    )
    opportunities: Annotated[list[Chance], Field(min_length=1, max_length=MOST_STEPS)] | None = (
        Field(default=None, description="the trace as a list: [ms, packets]; filled in from a file")
    )
    grants: Grants | None = Field(
        default=None, description="permission to send some bytes at once, at equal intervals"
    )

    @cached_property
    def table(self) -> Timetable:
        """The table for the qdisc; rates are cut to whole bytes/s, as netem has them."""
        if self.schedule:
            rows = [(round(s * 1e9), round(mbit * 1e6) // 8) for s, mbit in self.schedule]
            return Timetable("rates", tuple(rows), round((self.repeat_s or 0) * 1e9))
        return self.grants.table if self.grants else self._opportunities()

    def _opportunities(self) -> Timetable:
        """Make the table of opportunities; the last time is the period, and 0 of the next lap."""
        rows = self.opportunities or []
        end_ms = rows[-1][0]
        packets = {0: 0}
        for at_ms, count in rows:
            packets[at_ms % end_ms] = packets.get(at_ms % end_ms, 0) + count
        steps = [(ms * 10**6, OPPORTUNITY_BYTES * n) for ms, n in sorted(packets.items())]
        return Timetable("opportunities", tuple(steps), end_ms * 10**6)

    @property
    def start_mbit(self) -> float:
        """The rate at the start, Mbit/s; the mean rate for opportunities."""
        if self.schedule:
            return self.schedule[0][1]
        return self.table.lap_bytes * 8e3 / self.table.period_ns

    @property
    def least_mbit(self) -> float:
        """The lowest rate above 0, Mbit/s; the mean rate for opportunities."""
        rates = [mbit for _, mbit in self.schedule or () if mbit]
        return min(rates) if rates else self.start_mbit

    @property
    def most_mbit(self) -> float:
        """Peak rate, Mbit/s; for opportunities that of the busiest ms."""
        if self.schedule:
            return max(mbit for _, mbit in self.schedule)
        if self.grants:
            return self.grants.bytes * math.ceil(1 / self.grants.every_ms) * 8e-3
        return max(value for _, value in self.table.steps) * 8e-3
