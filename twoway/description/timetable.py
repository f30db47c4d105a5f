"""Tables of a link's changes: the schedule of a profile, and steps of the qdisc `timetable`."""

import itertools
from collections.abc import Sequence

from twoway.contract.network import START_NS, whole_ns
from twoway.contract.timetable import Timetable
from twoway.description.interface import Interface
from twoway.description.shaper import Shaper, options

# Steps in one message to the kernel.
_MESSAGE_STEPS = 2000


def order_problems(schedule: Sequence[tuple[float, float]], repeat_s: float | None) -> list[str]:
    """List problems of a schedule's times."""
    found = []
    if whole_ns(schedule[0][0]):
        found.append(f".schedule.0: the first is from 0 s on, got {schedule[0][0]:g}")
    found += [
        f".schedule.{n}: must be later than the one before ({first:g} s), got {second:g}"
        for n, ((first, _), (second, _)) in enumerate(itertools.pairwise(schedule), start=1)
        if whole_ns(second) <= whole_ns(first)
    ]
    if repeat_s and whole_ns(repeat_s) <= whole_ns(schedule[-1][0]):
        found.append(f".repeat_s: must be after the last ({schedule[-1][0]:g} s), got {repeat_s:g}")
    return found


def by_table(interface: Interface, table: Timetable, limit: int, overhead: int = 0) -> Shaper:
    """Build a qdisc that releases packets by a table that starts with the traffic."""
    said = {
        "table": table.kind,
        "steps": len(table.steps),
        "digest": table.digest,
        "period_ns": table.period_ns,
        "start_ns": START_NS,
        "limit": limit,
        "overhead": overhead,
    }
    # One message carries this many steps; changes add the rest.
    words = (
        f"timetable {table.kind} {_steps(table, 0)} period {table.period_ns}ns "
        f"start {START_NS}ns limit {limit} overhead {overhead}"
    )
    more = tuple(
        f"qdisc change dev {interface.name} root timetable {table.kind} {_steps(table, first)}"
        for first in range(_MESSAGE_STEPS, len(table.steps), _MESSAGE_STEPS)
    )
    return Shaper(interface, tuple(words.split()), options("timetable", said), more, is_ours=True)


def _steps(table: Timetable, first: int) -> str:
    factor, unit = {"rates": (8, "bit"), "opportunities": (1, ""), "delays": (1, "ns")}[table.kind]
    steps = table.steps[first : first + _MESSAGE_STEPS]
    return ",".join(f"{at_ns}ns:{factor * value}{unit}" for at_ns, value in steps)
