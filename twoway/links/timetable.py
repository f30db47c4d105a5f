"""Links that change by a table: their steps, and when packets leave them.

Let W(t) be the work that a link has offered by time t: for rates their integral, in 10^-9 bytes;
for opportunities the sum of their bytes up to t. A packet of L bytes that arrives at time a leaves
when W reaches its tag, max(tag of the packet before it, W(a)) + L. With a delay d the packet leaves
at a + d(a), and never before the packet before it. The kernel's sch_timetable keeps no tags, and is
compared with this model.
"""

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Annotated, Literal

import numpy as np
from capture_analysis.errors import AnalysisError
from numpy.typing import NDArray
from pydantic import Field

from twoway.contract.network import CHANGE_NS, START_NS, whole_ns
from twoway.links.interface import Interface
from twoway.links.shaper import Shaper, options

IntArray = NDArray[np.int64]
Kind = Literal["rates", "opportunities", "delays", "shares", "limits"]
Second = Annotated[float, Field(ge=0, le=100_000, multiple_of=1e-9)]
Repeat = Annotated[float, Field(gt=0, le=100_000)]

# Bytes that one opportunity of a mahimahi trace may carry (Netravali et al. 2015).
OPPORTUNITY_BYTES = 1500
# The kernel's TC_TIMETABLE_LARGEST_PACKET, bytes, and TC_TIMETABLE_MAX_STEPS.
_LARGEST_PACKET, _MOST_STEPS = 1 << 16, 1 << 20
# Limit of steps with all repetitions, 16 bytes each.
_MOST_REPEATED = 1 << 24
# Steps in one message to the kernel.
_MESSAGE_STEPS = 2000
# Each change by a command is a process in the guest.
_MOST_COMMANDS = 1000
_NS = 10**9
_FNV_START, _FNV_PRIME = 0xCBF29CE484222325, 0x100000001B3


@dataclass(frozen=True)
class Timetable:
    """A table of steps, the first at 0.

    Attributes:
        kind: the meaning of the values: bytes/s from the step on; bytes that may leave at its time;
            ns from arrival to departure from the step on; millionths of a percent of packets lost
            from the step on; or the most packets that wait from the step on.
        steps: times in ns since the start, ascending, and values.
        period_ns: ns after which the table starts again; 0: its last step stays.
    """

    kind: Kind
    steps: tuple[tuple[int, int], ...]
    period_ns: int = 0

    @property
    def digest(self) -> int:
        """FNV-1a of the steps, one word at a time, as the kernel computes it."""
        words = (word for step in self.steps for word in step)
        return reduce(lambda digest, word: (digest ^ word) * _FNV_PRIME % 2**64, words, _FNV_START)

    @cached_property
    def _columns(self) -> tuple[IntArray, IntArray]:
        columns = np.array(self.steps, dtype=np.int64)
        return columns[:, 0], columns[:, 1]

    @property
    def lap_bytes(self) -> float:
        """The bytes that the link offers from the table's start to its repetition."""
        return self.offered_bytes(0, 0, self.period_ns)

    @property
    def soon_placed(self) -> bool:
        """Tell whether the largest packet spans as few steps as the kernel demands."""
        laps = math.ceil(_LARGEST_PACKET / min(int(self.lap_bytes), _LARGEST_PACKET))
        return laps * len(self.steps) <= _MOST_STEPS

    def laps(self, start_ns: int, first_ns: int, last_ns: int) -> tuple[IntArray, IntArray]:
        """Repeat the table from before one time to after another.

        Before its start a table with a period repeats; without one the first step holds.

        Args:
            start_ns: when the table starts.
            first_ns: the first time.
            last_ns: the last time.

        Returns: shape (m,), times of steps, and their values.
        Raises: AnalysisError for more steps than any run needs, which memory may not hold.
        """
        at_ns, value = self._columns
        if not self.period_ns:
            begin_ns = min(start_ns, first_ns)
            return np.concatenate(([begin_ns], start_ns + at_ns[1:])), value
        first, last = ((t - start_ns) // self.period_ns for t in (first_ns, last_ns))
        if (last + 1 - first) * len(at_ns) > _MOST_REPEATED:
            raise AnalysisError(f"a table with more than {_MOST_REPEATED} steps in a run")
        lap_ns = start_ns + self.period_ns * np.arange(first, last + 1)
        return (lap_ns[:, None] + at_ns).ravel(), np.tile(value, len(lap_ns))

    def offered_bytes(self, start_ns: int, first_ns: int, last_ns: int) -> float:
        """Compute the bytes that the link offers between two times, by rates or opportunities."""
        time_ns, value = self.laps(start_ns, first_ns, last_ns)
        if self.kind == "opportunities":
            return float(value[(time_ns >= first_ns) & (time_ns < last_ns)].sum())
        edges = np.clip(np.append(time_ns, max(last_ns, time_ns[-1])), first_ns, last_ns)
        return float((np.diff(edges) * value).sum()) / _NS

    def value_at(self, start_ns: int, time_ns: IntArray) -> IntArray:
        """Look up the values in force at some times, ascending."""
        steps_ns, value = self.laps(start_ns, int(time_ns[0]), int(time_ns[-1]))
        return value[np.searchsorted(steps_ns, time_ns, side="right") - 1]

    def leaves(self, start_ns: int, arrived_ns: IntArray, size_bytes: IntArray) -> IntArray:
        """Compute when packets leave.

        Args:
            start_ns: start of the table.
            arrived_ns: shape (n,), arrivals, in the order in which packets leave; the link is idle
                before. Those of a table of delays are ascending.
            size_bytes: shape (n,), the packets' sizes on the link.
        """
        if not len(arrived_ns):
            return np.zeros(0, dtype=np.int64)
        first_ns, last_ns = int(arrived_ns.min()), int(arrived_ns.max())
        if self.kind == "delays":
            return np.maximum.accumulate(arrived_ns + self.value_at(start_ns, arrived_ns))
        # A backlog at the last arrival needs more laps: double their number until they suffice.
        ahead_ns = self.period_ns
        while True:
            found = self._by_tags(
                *self.laps(start_ns, first_ns, last_ns + ahead_ns), arrived_ns, size_bytes
            )
            if found is not None:
                return found
            ahead_ns *= 2

    def _by_tags(
        self, time_ns: IntArray, value: IntArray, arrived_ns: IntArray, size_bytes: IntArray
    ) -> IntArray | None:
        """Compute when W reaches each packet's tag; None if the steps end before."""
        row = np.searchsorted(time_ns, arrived_ns, side="right") - 1
        if self.kind == "rates":
            offered = np.concatenate(([0], np.cumsum(np.diff(time_ns) * value[:-1])))
            before, work = offered[row] + (arrived_ns - time_ns[row]) * value[row], size_bytes * _NS
        else:
            offered = np.cumsum(value)
            before, work = offered[row], size_bytes
        total = np.cumsum(work)
        tag = np.maximum.accumulate(before - (total - work)) + total
        at = np.searchsorted(offered, tag, side="left")
        if self.kind == "opportunities":
            return time_ns[at] if at[-1] < len(time_ns) else None
        if self.period_ns and at[-1] == len(time_ns):
            return None
        at -= 1
        return np.asarray(time_ns[at] - (-(tag - offered[at]) // value[at]))


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


def command_problems(schedule: Sequence[tuple[float, float]], repeat_s: float | None) -> list[str]:
    """List problems of a schedule whose changes are commands: each needs time to be in force."""
    times_s = [s for s, _ in schedule] + ([repeat_s] if repeat_s else [])
    steps_ns = [whole_ns(end) - whole_ns(begin) for begin, end in itertools.pairwise(times_s)]
    least = min(steps_ns, default=CHANGE_NS)
    found = order_problems(schedule, repeat_s)
    if 0 < least < CHANGE_NS:
        each = f"each value must last at least {CHANGE_NS / 1e6:g} ms"
        found.append(f".schedule: {each}, got {least / 1e9:g} s")
    return found


def duration_problems(
    schedule: Sequence[tuple[float, float]], repeat_s: float | None, duration_s: float
) -> list[str]:
    """Refuse a schedule with more commands than a run can have."""
    laps = -(-whole_ns(duration_s) // whole_ns(repeat_s)) if repeat_s else 1
    changes = laps * len(schedule)
    if changes <= _MOST_COMMANDS:
        return []
    return [f".schedule: a run has {_MOST_COMMANDS} changes at most, got {changes}"]


def changes_by_command(table: Timetable, stop_ns: int) -> Iterator[tuple[int, int]]:
    """List the values of a table after its first, with times in ns on the plan's clock."""
    times_ns, values = table.laps(START_NS, START_NS, stop_ns)
    for at_ns, value in zip(times_ns.tolist(), values.tolist(), strict=True):
        if START_NS < at_ns < stop_ns:
            yield at_ns, value


def by_table(
    interface: Interface,
    table: Timetable,
    limit: int,
    overhead: int = 0,
    sizes: tuple[str, ...] = (),
) -> Shaper:
    """Build a qdisc that releases packets by a table that starts with the traffic.

    Args:
        interface: the interface.
        table: the table.
        limit: the most packets that wait.
        overhead: bytes that the link adds to a frame.
        sizes: tc's words for a table of sizes, which each change of a qdisc must repeat.
    """
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
    change = " ".join(("qdisc change dev", interface.name, "root", *sizes, "timetable"))
    more = tuple(
        f"{change} {table.kind} {_steps(table, first)}"
        for first in range(_MESSAGE_STEPS, len(table.steps), _MESSAGE_STEPS)
    )
    return Shaper(interface, tuple(words.split()), options("timetable", said), more, is_ours=True)


def _steps(table: Timetable, first: int) -> str:
    factor, unit = {"rates": (8, "bit"), "opportunities": (1, ""), "delays": (1, "ns")}[table.kind]
    steps = table.steps[first : first + _MESSAGE_STEPS]
    return ",".join(f"{at_ns}ns:{factor * value}{unit}" for at_ns, value in steps)
