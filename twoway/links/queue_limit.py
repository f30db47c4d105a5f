"""A queue whose limit of packets changes by a schedule."""

from collections.abc import Iterator
from functools import cached_property
from typing import Annotated, ClassVar

from pydantic import Field

from twoway.links.element import Element, Link, Setting
from twoway.links.timetable import (
    Repeat,
    Second,
    Timetable,
    changes_by_command,
    command_problems,
    duration_problems,
)

Packets = Annotated[int, Field(ge=1, le=10_000_000)]


class QueueLimit(Element):
    """A limit of packets that changes at given times after the traffic's start.

    A drop-tail queue with more packets than its new limit keeps them, and takes none; an AQM may
    drop them. Before the start the first limit holds.
    """

    FIELD: ClassVar = "queue_limit"
    TITLE: ClassVar = "A limit that changes"
    DESCRIPTION: ClassVar = (
        "the queue's limit of packets, if it changes by a schedule; queue_packets is its largest"
    )

    schedule: Annotated[list[tuple[Second, Packets]], Field(min_length=1, max_length=1000)] = Field(
        description="[s, packets] in order, the first at 0"
    )
    repeat_s: Repeat | None = Field(
        default=None,
        description="time after which the schedule starts again; without it the last limit stays",
    )

    @cached_property
    def table(self) -> Timetable:
        """The schedule, in ns and packets."""
        rows = tuple((round(s * 1e9), packets) for s, packets in self.schedule)
        return Timetable("limits", rows, round((self.repeat_s or 0) * 1e9))

    @property
    def needs_guest(self) -> bool:
        """True: the schedule starts with the traffic."""
        return True

    def problems(self) -> list[str]:
        """List contradictions between fields."""
        return command_problems(self.schedule, self.repeat_s)

    def link_problems(self, link: Link, pools: object) -> list[str]:  # noqa: ARG002
        """Refuse a queue without such a limit, and one whose largest is not queue_packets."""
        if link.manager and not link.manager.limited(link):
            return [f": must change a limit of packets, and {link.manager.why_no_limit}"]
        most = max(packets for _, packets in self.schedule)
        if most == link.queue_packets:
            return []
        return [f".schedule: the largest must be queue_packets ({link.queue_packets}), got {most}"]

    def setting_problems(self, setting: Setting) -> list[str]:
        """Refuse a schedule with more changes than a run can have."""
        return duration_problems(self.schedule, self.repeat_s, setting.duration_s)

    def changes(self, stop_ns: int) -> Iterator[tuple[int, int]]:
        """List the later limits, with times in ns on the plan's clock."""
        return changes_by_command(self.table, stop_ns)
