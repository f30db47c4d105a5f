"""tc's words for losses: netem's, or an action before it that counts packets."""

import math
from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Self

from twoway.contract.links import loss
from twoway.contract.network import CHANGE_NS, START_NS, whole_ns
from twoway.description.links import BehindQueue, egress_action, shares_read
from twoway.description.shaper import Readback
from twoway.description.timetable import order_problems

if TYPE_CHECKING:
    from twoway.description.experiment import Experiment

# Each change of a schedule is a process in the guest.
_MOST_CHANGES = 1000


class Loss(loss.Loss, BehindQueue):
    """Losses by the kernel."""

    def problems(self) -> list[str]:
        """List contradictions between fields."""
        found = []
        given = [name for name in ("percent", "every", "schedule") if getattr(self, name)]
        if len(given) != 1:
            got = " and ".join(given) or "none"
            found.append(f": takes one of percent, every and schedule; got {got}")
        if self.burst_packets and not self.percent:
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
        return [*found, *self._schedule_problems()]

    def _schedule_problems(self) -> Iterator[str]:
        if not self.schedule:
            return
        yield from order_problems(self.schedule, self.repeat_s)
        times_s = [s for s, _ in self.schedule] + ([self.repeat_s] if self.repeat_s else [])
        steps_ns = [whole_ns(end) - whole_ns(begin) for begin, end in pairwise(times_s)]
        if steps_ns and 0 < min(steps_ns) < CHANGE_NS:
            yield (
                f".schedule: each share must last at least {CHANGE_NS / 1e6:g} ms, got "
                f"{min(steps_ns) / 1e9:g} s"
            )

    def setting_problems(self, experiment: "Experiment") -> list[str]:
        """Refuse a schedule with more changes than a run can have."""
        duration_ns, lap_ns = whole_ns(experiment.duration_s), whole_ns(self.repeat_s or 0)
        laps = -(-duration_ns // lap_ns) if lap_ns else 1
        changes = laps * len(self.schedule or ())
        if changes <= _MOST_CHANGES:
            return []
        return [f".schedule: a run has {_MOST_CHANGES} changes at most, got {changes}"]

    @property
    def needs_guest(self) -> bool:
        """True if the loss follows a schedule, which starts with the traffic."""
        return self.schedule is not None

    def changes(self, stop_ns: int) -> Iterator[tuple[int, Self]]:
        """List the later shares of the schedule, each as a loss without a schedule."""
        if self.schedule:
            times_ns, values = self.table.laps(START_NS, START_NS, stop_ns)
            for at_ns, value in zip(times_ns.tolist(), values.tolist(), strict=True):
                if START_NS < at_ns < stop_ns:
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
