"""Asking two runs until when their difference decides a metric.

A run of the first experiment gets the second's parameter at a time t. At the start that is the
second run, at the end the first: between them is the last moment at which the parameter decides, or
its effect fades.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from twoway.backends.backend import Backend
from twoway.contract.plan import SetSysctls
from twoway.description.point import Point
from twoway.errors import UsageError
from twoway.measure.analysis import Analysis
from twoway.plan.plan import build_plan
from twoway.report.comparing import parameters
from twoway.runs.interventions import NOTHING
from twoway.sweeps.why import measured_metric, refuse_unrepeatable, run_changed

# Times of the first pass, between the start and the end of the traffic.
_FIRST = 7
# Times of each later pass, between the two times with the largest step.
_LATER = 3
# A step between two times this close is one moment, s.
_MOMENT_S = 1e-3
# A step decides if it is more than this share of the difference of both runs.
_DECIDES = 0.5


class Asked(NamedTuple):
    """A finished run, with its experiment of today."""

    folder: Path
    point: Point
    backend: Backend


@dataclass(frozen=True)
class Turning:
    """A metric over the time at which a parameter changes.

    Attributes:
        runs: the folders of both runs.
        parameter: the parameter, with its value in the second run.
        metric: the metric's name.
        unit: its unit; "1" for none.
        values: the metric in both runs.
        curve: times after the traffic's start, and the metric if the parameter changes then.
        step: the two times between which the metric changes most.
        decides: whether that step is more than half of the difference of both runs.
    """

    runs: tuple[str, str]
    parameter: str
    metric: str
    unit: str
    values: tuple[float, float]
    curve: tuple[tuple[float, float], ...]
    step: tuple[float, float]
    decides: bool

    @property
    def sentences(self) -> list[str]:
        """The answer in words."""
        unit = f" {self.unit}" if self.unit != "1" else ""
        first, second = (f"{each:.4g}" for each in self.values)
        both = f"{self.metric} is {first}{unit}, and with {self.parameter} from the start {second}."
        at = dict(self.curve)
        before, after = (at[each] for each in self.step)
        if before == after:
            return [both, f"{self.parameter} changes nothing at any time that was tried."]
        begin, end = (f"{each:.4f} s" for each in self.step)
        if not self.decides:
            most = f"{abs(after - before):.2g}{unit}"
            said = f"No single moment decides: the largest step, between {begin} and {end}, is "
            return [both, f"{said}{most}."]
        said = f"{self.parameter} decides until {begin}: from then on it makes {before:.4g}{unit}, "
        return [both, f"{said}and from {end} on {after:.4g}."]

    def document(self) -> dict[str, Any]:
        """Return the answer as a JSON object."""
        return {**asdict(self), "sentences": self.sentences}


def find_turning(first: Asked, second: Asked, metric: str | None, crew: int) -> Turning:
    """Find until when the parameter in which two runs differ decides a metric of the first.

    Raises: UsageError if they differ in several parameters, or in one that cannot change.
    """
    analyses = [Analysis(each.folder) for each in (first, second)]
    for each, analysis in zip((first, second), analyses, strict=True):
        refuse_unrepeatable(analysis.run.manifest, each.point, each.backend)
    fields = parameters([analysis.run.manifest for analysis in analyses])
    # An experiment with its own profile has each of its fields twice.
    differ = {path.removeprefix("experiment.profile."): each for path, each in fields.items()}
    differ = {path.removeprefix("profile."): each for path, each in differ.items()}
    change = _change(first, second, list(differ.items()))
    name, value, unit = measured_metric(analyses[0], first.point, metric)
    _, other, _ = measured_metric(analyses[1], second.point, name)
    duration_s = first.point.experiment.duration_s
    curve = {0.0: other, duration_s: value}
    times = [duration_s * k / (_FIRST + 1) for k in range(1, _FIRST + 1)]
    of, step = (first.point, first.backend, first.folder, name), (0.0, duration_s)
    while times:
        asked = [_at(change.interventions, time_s) for time_s in times]
        for time_s, (found, problem) in zip(times, run_changed(asked, of, crew), strict=True):
            if NOTHING in problem:
                curve[time_s] = value
            elif found is not None:
                curve[time_s] = found
        curve = dict(sorted(curve.items()))
        step = _largest_step(curve)
        times = _between(step) if _decides(curve, step, value - other) else []
    return Turning(
        runs=(str(first.folder), str(second.folder)),
        parameter=change.text,
        metric=name,
        unit=unit,
        values=(value, other),
        curve=tuple(curve.items()),
        step=step,
        decides=_decides(curve, step, value - other),
    )


def _decides(curve: Mapping[float, float], step: tuple[float, float], whole: float) -> bool:
    """Tell whether a step is more than half of the difference of both runs, or of the curve's."""
    whole = abs(whole) or max(curve.values()) - min(curve.values())
    return abs(curve[step[1]] - curve[step[0]]) > _DECIDES * whole


def _between(step: tuple[float, float]) -> list[float]:
    """List the times of the next pass; none if the step is one moment already."""
    width = (step[1] - step[0]) / (_LATER + 1)
    later = [step[0] + width * k for k in range(1, _LATER + 1)]
    return later if step[1] - step[0] > _MOMENT_S else []


def _largest_step(curve: Mapping[float, float]) -> tuple[float, float]:
    """Find the two neighbouring times between which a metric changes most."""
    times = list(curve)
    return max(pairwise(times), key=lambda pair: abs(curve[pair[1]] - curve[pair[0]]))


def _at(asked: Sequence[Mapping[str, Any]], time_s: float) -> list[dict[str, Any]]:
    """Write interventions that begin at a time."""
    return [
        {action: {**fields, "at_s": round(time_s, 9)} for action, fields in each.items()}
        for each in asked
    ]


class _Change(NamedTuple):
    """A parameter with its new value in words, and interventions without their time."""

    text: str
    interventions: tuple[Mapping[str, Any], ...]


def _change(first: Asked, second: Asked, differ: Sequence[tuple[str, Any]]) -> _Change:
    """Write the difference of two experiments as interventions; UsageError if there are none."""
    both = f"{first.point.id} and {second.point.id}"
    if len(differ) != 1:
        names = ", ".join(path for path, _ in differ) or "nothing"
        raise UsageError(f"{both} must differ in one parameter, and differ in {names:.300}")
    path, values = differ[0]
    field, new = path.rpartition(".")[2], values.values[1]
    text = f"{field} {new}"
    if field == "congestion":
        before = {each.name: each.congestion for each in first.point.connections}
        flows = [e.name for e in second.point.connections if e.congestion != before.get(e.name)]
        return _Change(text, tuple({"control": {"flow": f, "congestion": new}} for f in flows))
    if field == "queue_packets":
        direction = path.split(".")[-2]
        queues = [q.name for q in first.point.graph.placed_queues if q.direction == direction]
        return _Change(text, tuple({"limit": {"queue": q, "packets": new}} for q in queues))
    if field in ("rate_mbit", "delay_ms"):
        return _Change(text, ({"link": {"direction": path.split(".")[-2], field: new}},))
    if changed := _sysctls(first, second):
        return _Change(text, tuple({"set": {"host": h, "sysctls": s}} for h, s in changed.items()))
    raise UsageError(
        f"{both} differ in {path}, which cannot change during a run",
        "a control, a drop-tail queue's limit, a rate, a delay, or a sysctl of the stack can",
    )


def _sysctls(first: Asked, second: Asked) -> dict[str, dict[str, Any]]:
    """List the sysctls of hosts that the second plan sets otherwise, by host."""
    plans = [build_plan(each.point, in_kernel=each.backend.in_kernel) for each in (first, second)]
    one, other = (
        {step.node: step.sysctls for step in plan.setup if isinstance(step, SetSysctls)}
        for plan in plans
    )
    found = {
        host: dict(other[host].items() - one.get(host, {}).items())
        for host in first.point.graph.hosts
        if host in other
    }
    return {host: changed for host, changed in found.items() if changed}
