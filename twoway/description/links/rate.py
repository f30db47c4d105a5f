"""Reading a rate that changes by a table, and tc's words for it."""

import itertools
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Self

from twoway.contract.links import rate
from twoway.contract.links.rate import MOST_STEPS
from twoway.contract.timetable import OPPORTUNITY_BYTES
from twoway.description.files_below import below
from twoway.description.interface import Interface
from twoway.description.links import RatedQueue
from twoway.description.shaper import Shaper
from twoway.description.timetable import by_table, order_problems

if TYPE_CHECKING:
    from twoway.description.experiment import Direction

_MOST_BYTES = 1 << 24


class Rate(rate.Rate, RatedQueue):
    """A rate by a table."""

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
            found = _read(below(folder, self.mahimahi))
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

    def shaper(self, interface: Interface, direction: "Direction") -> Shaper:
        """Build a qdisc of the table."""
        limits = (direction.queue_packets, direction.overhead_bytes)
        return by_table(interface, self.table, *limits)


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
    if len(times) > MOST_STEPS:
        raise ValueError(f"has opportunities at more than {MOST_STEPS} times")
    return [*times.items()]
