"""A propagation delay that changes by a schedule."""

from dataclasses import replace
from functools import cached_property
from typing import Annotated, ClassVar

from pydantic import Field

from twoway.links.element import Delay
from twoway.links.interface import Interface
from twoway.links.shaper import Shaper
from twoway.links.timetable import Repeat, Second, Timetable, by_table, order_problems

# Up to 30 days, in whole ns.
Milliseconds = Annotated[float, Field(ge=0, le=2_592_000_000, multiple_of=1e-6)]


class ChangingDelay(Delay):
    """A propagation delay that changes at given times after the traffic's start.

    A packet has the delay of the time at which it was sent, and none overtakes another. Before the
    start the first delay holds, or the schedule repeats.
    """

    FIELD: ClassVar = "delay"
    TITLE: ClassVar = "A delay that changes"
    DESCRIPTION: ClassVar = (
        "a delay that changes by a schedule, or a delay of up to 30 days, instead of delay_ms"
    )

    schedule: Annotated[
        list[tuple[Second, Milliseconds]], Field(min_length=1, max_length=100_000)
    ] = Field(description="[s, ms] in order, the first at 0")
    repeat_s: Repeat | None = Field(
        default=None,
        description="time after which the schedule starts again; without it the last delay stays",
    )

    @cached_property
    def table(self) -> Timetable:
        """The table for the qdisc."""
        rows = [(round(s * 1e9), round(ms * 1e6)) for s, ms in self.schedule]
        return Timetable("delays", tuple(rows), round((self.repeat_s or 0) * 1e9))

    @property
    def longest_ns(self) -> int:
        """The longest delay."""
        return max(value for _, value in self.table.steps)

    @property
    def needs_guest(self) -> bool:
        """True: the table starts with the traffic."""
        return True

    def problems(self) -> list[str]:
        """List contradictions between fields."""
        return order_problems(self.schedule, self.repeat_s)

    @property
    def has_own_delay(self) -> bool:
        """True: it keeps packets in order, which holds for one queue only."""
        return True

    @property
    def shortest_ns(self) -> int:
        """The shortest delay."""
        return min(value for _, value in self.table.steps)

    def shaper(self, interface: Interface, limit: int, inside_ns: int) -> Shaper:
        """Build a qdisc of the table."""
        steps = tuple((at_ns, value - inside_ns) for at_ns, value in self.table.steps)
        return by_table(interface, replace(self.table, steps=steps), limit)
