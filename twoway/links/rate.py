"""A rate that changes by a table: a schedule, grants, or a mahimahi trace."""

import itertools
import math
from collections import Counter
from functools import cached_property
from pathlib import Path
from typing import Annotated, ClassVar, Self

from pydantic import Field

from twoway.contract.files_below import find_below
from twoway.contract.model import Model
from twoway.links.element import Link, RateShaper
from twoway.links.interface import Interface
from twoway.links.shaper import Shaper, sizes_on_link
from twoway.links.timetable import (
    OPPORTUNITY_BYTES,
    Repeat,
    Second,
    Timetable,
    by_table,
    order_problems,
)

Mbit = Annotated[float, Field(ge=0, le=100_000)]
Change = tuple[Second, Mbit]
Milliseconds = Annotated[int, Field(ge=0, le=10**8)]
Chance = tuple[Milliseconds, Annotated[int, Field(ge=1, le=10**6)]]
# Enough for a trace of 17 minutes with opportunities each ms.
_MOST_STEPS = 1 << 20
_MOST_BYTES = 1 << 24


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


class Rate(RateShaper):
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
    opportunities: Annotated[list[Chance], Field(min_length=1, max_length=_MOST_STEPS)] | None = (
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

    @property
    def rate_note(self) -> str:
        """The words after `start_mbit` in a label: a trace has a mean rate."""
        return "at first" if self.schedule else "on average"

    @property
    def burst_ns(self) -> int:
        """Opportunities in one ms of a trace are used at once."""
        return 10**6

    @property
    def needs_guest(self) -> bool:
        """True: the table starts with the traffic."""
        return True

    def read(self, folder: Path) -> Self:
        """Read the trace, if it is a file.

        Args:
            folder: the profile's folder.

        Raises: ValueError with a sentence after the field that names the file.
        """
        if not self.mahimahi:
            return self
        if self.opportunities:
            raise ValueError(f".mahimahi: {self.mahimahi}: opportunities are given as well")
        try:
            found = _read(find_below(folder, self.mahimahi))
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            raise ValueError(f".mahimahi: {self.mahimahi}: {reason}") from error
        return self.model_copy(update={"opportunities": found})

    def problems(self) -> list[str]:
        """List contradictions between fields."""
        found = []
        tables = ("schedule", "grants", "mahimahi", "opportunities")
        given = [name for name in tables if getattr(self, name)]
        if len(given) != 1 and given != ["mahimahi", "opportunities"]:
            found.append(
                ": takes one of schedule, grants, mahimahi and opportunities; "
                f"got {' and '.join(given) or 'none'}"
            )
        if self.repeat_s and not self.schedule:
            found.append(f".repeat_s: not allowed with grants or traces, got {self.repeat_s:g}")
        if self.schedule:
            found += self._schedule_problems(self.schedule)
        times = [ms for ms, _ in self.opportunities or ()]
        found += [
            f".opportunities.{n}: must be later than the one before ({first} ms), got {second}"
            for n, (first, second) in enumerate(itertools.pairwise(times), start=1)
            if second <= first
        ]
        if times and not times[-1]:
            found.append(".opportunities: the last must be after 0 ms, got 0")
        return found

    def _schedule_problems(self, schedule: list[tuple[float, float]]) -> list[str]:
        found = order_problems(schedule, self.repeat_s)
        if not schedule[0][1]:
            found.append(".schedule.0: the first rate must be above 0, got 0")
        if self.repeat_s and not found and self.table.lap_bytes < OPPORTUNITY_BYTES:
            found.append(
                f".repeat_s: must be long enough for {OPPORTUNITY_BYTES} bytes, "
                f"got {self.repeat_s:g}"
            )
        elif self.repeat_s and not found and not self.table.soon_placed:
            found.append(
                f".schedule: {len(schedule)} changes are too many for the "
                f"{self.table.lap_bytes:.0f} bytes sent in one repetition"
            )
        if not self.repeat_s and not schedule[-1][1]:
            found.append(f".schedule.{len(schedule) - 1}: the last rate must be above 0, got 0")
        return found

    def shaper(self, interface: Interface, link: Link) -> Shaper:
        """Build a qdisc of the table."""
        limits = (link.queue_packets, link.shaper_overhead)
        return by_table(interface, self.table, *limits, sizes_on_link(link))


def _read(path: Path) -> list[tuple[int, int]]:
    """Read a mahimahi trace: times in ms, and the number of opportunities at each."""
    with path.open("rb") as file:
        content = file.read(_MOST_BYTES + 1)
    if len(content) > _MOST_BYTES:
        raise ValueError(f"more than {_MOST_BYTES >> 20} MiB")
    lines = content.decode("ascii", "replace").split("\n")
    times: Counter[int] = Counter()
    last = 0
    for number, line in enumerate(lines, start=1):
        if not line.strip() and number == len(lines):
            break
        if not (line.strip().isdigit() and len(line.strip()) < 10):
            raise ValueError(f"line {number}: must be a time in whole ms, got {line[:20]!r}")
        at_ms = int(line)
        if at_ms < last:
            raise ValueError(
                f"line {number}: must not be before the one before ({last}), got {at_ms}"
            )
        last = at_ms
        times[at_ms] += 1
    if not last:
        raise ValueError("has no opportunity after 0 ms")
    if len(times) > _MOST_STEPS:
        raise ValueError(f"has opportunities at more than {_MOST_STEPS} times")
    return [*times.items()]
