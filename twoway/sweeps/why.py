"""Asking a run which event decided a metric: one more run for each event, without that event.

Events are losses of queues, random losses of links, and marks: each alone, those that follow each
other within the longest round trip together, and those that end in one time-out together; and
pauses of applications, and receivers' windows that are shut. A run without any has other flows.
"""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from twoway.backends.backend import Backend
from twoway.description.interventions import MOST_INTERVENTIONS, Intervention
from twoway.description.point import Point
from twoway.errors import RunError, UsageError
from twoway.manifest import Manifest
from twoway.measure.analysis import Analysis
from twoway.measure.document import compute_one
from twoway.messages import suggest
from twoway.runs.identity import identity
from twoway.runs.run import run_experiment
from twoway.sweeps.events import PAUSE_S, Event, events_of, starts_of, still_dropped
from twoway.sweeps.sweep import Work
from twoway.sweeps.workers import run_each

# Several losses that are worth more than this many times the sum of each one's effect interact.
_TOGETHER = 2
# Events for each pair of neighbours that is tried.
_EVENTS_A_PAIR = 4
# Pairs of a metric's value and an error, as a worker returns them.
_Tried = tuple[float | None, str]


class Pair(NamedTuple):
    """Two events that follow each other, and the run without both.

    Attributes:
        times: their times in words.
        effect: by how much the metric is more without both.
        alone: the sum of their effects one by one.
    """

    times: tuple[str, str]
    effect: float
    alone: float


@dataclass(frozen=True)
class Answer:
    """The events of a run by their effect on a metric, largest first.

    Attributes:
        run: the run's folder.
        metric: the metric's name.
        unit: its unit; "1" for none.
        value: its value in the run.
        events: those that were tried.
        left_out: number of events that were not tried.
        elsewhere: number of losses that cannot be averted.
        pairs: the pairs of neighbouring events that were tried, too.
    """

    run: str
    metric: str
    unit: str
    value: float
    events: tuple[Event, ...]
    left_out: int
    elsewhere: int
    pairs: tuple[Pair, ...] = ()

    @property
    def sentences(self) -> list[str]:
        """The answer in words: the largest effect, interactions, and the events left out."""
        found = [self._largest(), *self._interactions()]
        if self.left_out:
            found.append(f"{self.left_out} more events were not tried.")
        if unknown := sum(each.effect is None for each in self.events):
            found.append(
                f"Without {unknown} of the events {self.metric} is not known: their rows say why."
            )
        if self.elsewhere:
            found.append(
                f"{self.elsewhere} losses by a manager that cannot mark or whose queue is full, a "
                "policer, a channel, or a link that loses by count cannot be averted: not tried."
            )
        return found

    def _largest(self) -> str:
        tried = [event for event in self.events if event.effect is not None]
        if not tried:
            return "No event of this run can be averted."
        first, others = tried[0], [e for e in tried[1:] if not _overlap(tried[0], e)]
        all_known = len(tried) == len(self.events) and not self.left_out + self.elsewhere
        which = "event" if all_known else "event that was tried"
        if not first.effect:
            return f"No single {which} changes {self.metric}, {self._shown(self.value)}."
        rest = max((abs(e.effect or 0) for e in others), default=0)
        clause = f"; no other {which} is worth more than {rest:.2g}" if others else ""
        assert first.value is not None
        return (
            f"{'From' if ' to ' in first.when else 'At'} {first.when} the {first.subject} "
            f"{first.text}. Without {first.noun} {self.metric} is {first.value:.4g} instead of "
            f"{self._shown(self.value)}{clause}."
        )

    def _interactions(self) -> Iterator[str]:
        """Tell the bursts and pairs that together are worth more than twice their sum."""
        for burst in (event for event in self.events if event.place == 0):
            mine = [e for e in self.events if e.place and e.burst == burst.burst]
            effects = [e.effect for e in mine if e.effect is not None]
            if burst.effect is None or len(effects) < burst.packets:
                continue
            plural = f"{burst.kind}{'es' if burst.kind == 'loss' else 's'}"
            if abs(burst.effect) > _TOGETHER * abs(sum(effects)):
                yield (
                    f"The {burst.packets} {plural} of {burst.when} interact: together they are "
                    f"worth {burst.effect:.2g}, and one by one {sum(effects):.2g} in all."
                )
        for (first, second), effect, alone in self.pairs:
            if abs(effect) > _TOGETHER * abs(alone):
                yield (
                    f"The events of {first} and of {second} interact: together they are worth "
                    f"{effect:.2g}, and one by one {alone:.2g} in all."
                )

    def _shown(self, value: float) -> str:
        return f"{value:.4g}" + (f" {self.unit}" if self.unit != "1" else "")

    def document(self) -> dict[str, Any]:
        """Return the answer as a JSON object."""
        return {**asdict(self), "sentences": self.sentences}


def _overlap(one: Event, other: Event) -> bool:
    """Tell whether one event is part of the other."""
    return one.burst == other.burst and 0 in (one.place, other.place)


def ask(
    folder: Path,
    point: Point,
    backend: Backend,
    metric: str | None,
    *,
    most: int,
    crew: int,
    pause_s: float = PAUSE_S,
) -> Answer:
    """Run a run's experiment once for each event, without the event, and measure one metric.

    At most `most` events are tried: bursts first, then the first losses of each.

    Raises: UsageError if the run is not one of this experiment, or has no such metric.
    """
    analysis = Analysis(folder)
    manifest = analysis.run.manifest
    if manifest.interventions:
        where = f"{manifest.experiment.id}/{manifest.run}"
        raise UsageError(f"{where}: has interventions", "ask the experiment without them")
    refuse_unrepeatable(manifest, point, backend)
    name, value, unit = measured_metric(analysis, point, metric)
    found, elsewhere = events_of(analysis, point, pause_s)
    found = found or [*starts_of(point, name)]
    found.sort(key=lambda e: (e.place, e.time_s))
    asked = [list(event.interventions) for event in found[:most]]
    tried = run_changed(asked, (point, backend, folder, name), crew)
    events = [_valued(event, *got, value) for event, got in zip(found[:most], tried, strict=True)]
    neighbours = _neighbours(events)[: len(events) // _EVENTS_A_PAIR]
    asked = [[*a.interventions, *b.interventions] for a, b in neighbours]
    both = run_changed(asked, (point, backend, folder, name), crew) if asked else []
    pairs = [
        Pair((a.when, b.when), without - value, (a.effect or 0) + (b.effect or 0))
        for (a, b), (without, _) in zip(neighbours, both, strict=True)
        if without is not None
    ]
    events.sort(key=lambda e: (-abs(e.effect or 0), e.effect is None, e.time_s))
    rest = len(found) - len(events)
    return Answer(str(folder), name, unit, value, tuple(events), rest, elsewhere, tuple(pairs))


def _neighbours(events: Sequence[Event]) -> list[tuple[Event, Event]]:
    """List bursts, and losses outside of bursts, that follow each other: the closest first."""
    bursts = {event.burst for event in events if event.place == 0}
    whole = [e for e in events if e.effect is not None and (e.place == 0 or e.burst not in bursts)]
    pairs = [
        (first, second)
        for first, second in pairwise(sorted(whole, key=lambda e: e.time_s))
        if first.last_s < second.time_s
        and len(first.interventions) + len(second.interventions) <= MOST_INTERVENTIONS
    ]
    return sorted(pairs, key=lambda pair: pair[1].time_s - pair[0].last_s)


def measured_metric(analysis: Analysis, point: Point, metric: str | None) -> tuple[str, float, str]:
    """Measure a metric of a run: its name, its value and its unit.

    Without a name it is the goodput of the first connection, or, without one, the utilisation of
    the first queue.

    Raises: UsageError if the run has no such metric.
    """
    usual = [f"goodput.{each.name}" for each in analysis.run.connections]
    usual += [f"utilisation.{each}" for each in analysis.queues]
    name = metric or next(iter(usual), "utilisation")
    measured = compute_one(analysis, name)
    if measured is None or measured.value is None:
        what = "has no value in this run" if measured else "no such metric"
        guess = "" if measured else suggest(name, point.metrics)
        raise UsageError(f"--metric: {name:.80}: {what}{guess}", "the run's page lists its metrics")
    return name, measured.value, measured.unit


def _valued(event: Event, value: float | None, problem: str, before: float) -> Event:
    effect = None if value is None else value - before
    return replace(event, value=value, effect=effect, problem=problem)


def refuse_unrepeatable(manifest: Manifest, point: Point, backend: Backend) -> None:
    """Raise UsageError if a run cannot be repeated to the byte."""
    where = f"{manifest.experiment.id}/{manifest.run}"
    if manifest.clock_source != "virtual":
        raise UsageError(f"{where}: ran in real time, and cannot be repeated to the byte")
    if identity(point, backend) != manifest.identity:
        raise UsageError(
            f"{where}: the experiment, the kernel or the tools are not those of the run any more",
            "`twoway run` makes a run of now",
        )


def run_changed(
    changes: Sequence[Sequence[Mapping[str, Any]]], of: tuple[Point, Backend, Path, str], crew: int
) -> list[_Tried]:
    """Run an experiment once for each list of interventions, and measure a metric of each run.

    `of` are the experiment, its backend, the folder of its run without interventions, the metric.
    """
    point, backend, original, metric = of
    works = []
    for change in changes:
        asked = [Intervention.model_validate(each) for each in change]
        changed = point.experiment.model_copy(update={"interventions": asked})
        works.append(Work(point.id, replace(point, experiment=changed), backend, original))
    task = partial(_measured_without, original, metric)
    return list(run_each(works, task, crew, "runs, each with one change"))


def _measured_without(original: Path, metric: str, work: Work) -> _Tried:
    """Run one point in a folder of its own, and measure one metric; return it, or an error."""
    with tempfile.TemporaryDirectory(prefix="twoway-") as scratch:
        try:
            folder = run_experiment(work.point, work.backend, Path(scratch), beside=original)
        except RunError as error:
            return None, str(error)
        analysis = Analysis(folder)
        if left := still_dropped(analysis, work.point.experiment.interventions):
            return None, f"the queue is full, and drops {left} packets of that time all the same"
        measured = compute_one(analysis, metric)
    return (measured.value if measured else None), ""
