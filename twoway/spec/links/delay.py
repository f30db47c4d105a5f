"""A propagation delay that changes by a schedule."""

from functools import cached_property
from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import Field

from twoway.spec.graph import Interface
from twoway.spec.links import Delay
from twoway.spec.shaper import Shaper
from twoway.spec.timetable import Repeat, Second, by_table, order_problems
from twoway.theory.timetable import Timetable, delay_table

if TYPE_CHECKING:
    from twoway.spec.experiment import Direction, Profile

# Up to 30 days, in whole ns.
Milliseconds = Annotated[float, Field(ge=0, le=2_592_000_000, multiple_of=1e-6)]


class ChangingDelay(Delay):
    """A propagation delay that changes at given times after the traffic's start.

    A packet has the delay of the time at which it was sent, and none overtakes another. Before the
    start the first delay holds, or the schedule repeats.
    """

    FIELD: ClassVar = "delay"
    DESCRIPTION: ClassVar = (
        "a delay that changes by a schedule, or up to 30 days, instead of delay_ms"
    )

    schedule: Annotated[
        list[tuple[Second, Milliseconds]], Field(min_length=1, max_length=100_000)
    ] = Field(description="[s, ms] in order, the first at 0")
    repeat_s: Repeat | None = Field(
        default=None, description="the schedule starts again after it; else its last delay lasts"
    )

    def problems(self, direction: "Direction", profile: "Profile") -> list[str]:
        """List contradictions between fields."""
        del direction, profile
        return order_problems(self.schedule, self.repeat_s)

    @cached_property
    def table(self) -> Timetable:
        """The table of the qdisc."""
        return delay_table(self.model_dump())

    @property
    def longest_ns(self) -> int:
        """The longest delay."""
        return max(value for _, value in self.table.steps)

    def shaper(self, interface: Interface, limit: int) -> Shaper:
        """Build a qdisc of the table."""
        return by_table(interface, self.table, limit)
