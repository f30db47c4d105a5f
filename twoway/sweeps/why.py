"""Asking a run which event decided a metric: one more run for each event, without that event.

Events are the losses of drop-tail queues: each alone, and those that follow each other within the
longest round trip together.
"""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from capture_analysis.columns import IntArray

from twoway.backends.backend import Backend
from twoway.contract.network import START_NS
from twoway.description.interventions import Intervention, drops_when_full_alone
from twoway.description.point import Point
from twoway.errors import RunError, UsageError
from twoway.manifest import Manifest
from twoway.measure.analysis import Analysis
from twoway.measure.document import compute_one
from twoway.measure.queue_view import QueueView
from twoway.messages import suggest
from twoway.progress import Steps
from twoway.report.comparing import relative
from twoway.runs.identity import identity
from twoway.runs.run import run_experiment
from twoway.sweeps.sweep import Outcome, Work
from twoway.sweeps.workers import workers

# Several losses that are worth more than this many times the sum of each one's effect interact.
_TOGETHER = 2
# Pairs of a metric's value and an error, as a worker returns them.
_Tried = tuple[float | None, str]
# Names of connections, by time and sequence number of lost data.
_Owners = Mapping[tuple[int, int], str]


@dataclass(frozen=True)
class Event:
    """An event of a run, and the metric without it.

    Attributes:
        time_s: its time after the traffic's start.
        last_s: the time of its last packet.
        queue: the queue that dropped.
        packets: number of packets that it dropped.
        flow: the connection whose data it dropped; None for several, ACKs and datagrams.
        segment: number of the dropped segment, from 1; None if it is not one of data.
        burst: number of the burst that it belongs to, or is.
        place: number of the loss in its burst, from 1; 0 for the burst itself.
        intervention: the run without it, as in an experiment's file.
        value: the metric without it; None if it is undefined, or if there is no such run.
        effect: by how much that is more than the run's own.
        problem: why there is no such run; empty otherwise.
    """

    time_s: float
    last_s: float
    queue: str
    packets: int
    flow: str | None
    segment: int | None
    burst: int
    place: int
    intervention: Mapping[str, Any]
    value: float | None = None
    effect: float | None = None
    problem: str = ""

    @property
    def text(self) -> str:
        """The event in words, without its time."""
        of = f" of {self.flow}" if self.flow else ""
        if self.packets > 1:
            return f"{self.queue} dropped {self.packets} packets{of}"
        return f"{self.queue} dropped {f'segment {self.segment}{of}' if of else 'a packet'}"

    @property
    def when(self) -> str:
        """The event's time in words."""
        first, last = (f"{each:.3f}" for each in (self.time_s, self.last_s))
        return f"{first} s" if first == last else f"{first} to {last} s"


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
        elsewhere: number of losses that cannot be averted: of managed queues and channels.
    """

    run: str
    metric: str
    unit: str
    value: float
    events: tuple[Event, ...]
    left_out: int
    elsewhere: int

    @property
    def sentences(self) -> list[str]:
        """The answer in words: the largest effect, interactions, and the events left out."""
        found = [self._largest(), *self._interactions()]
        if self.left_out:
            found.append(f"{self.left_out} more events were not tried.")
        if self.elsewhere:
            found.append(
                f"{self.elsewhere} losses by a manager or a channel cannot be averted: not tried."
            )
        return found

    def _largest(self) -> str:
        tried = [event for event in self.events if event.effect is not None]
        if not tried:
            return "No event of this run can be averted."
        first, others = tried[0], [e for e in tried[1:] if not _overlap(tried[0], e)]
        if not first.effect:
            return f"No single event changes {self.metric}, {self._shown(self.value)}."
        without = "these" if first.packets > 1 else "that drop"
        rest = max((abs(e.effect or 0) for e in others), default=0)
        which = "event that was tried" if self.left_out else "event"
        clause = f"; no other {which} is worth more than {rest:.2g}" if others else ""
        assert first.value is not None
        return (
            f"{'From' if ' to ' in first.when else 'At'} {first.when} the queue {first.text}. "
            f"Without {without} {self.metric} is {first.value:.4g} instead of "
            f"{self._shown(self.value)}{clause}."
        )

    def _interactions(self) -> Iterator[str]:
        """Tell the bursts whose losses together are worth more than twice their sum."""
        for burst in (event for event in self.events if event.place == 0):
            mine = [e for e in self.events if e.place and e.burst == burst.burst]
            effects = [e.effect for e in mine if e.effect is not None]
            if burst.effect is None or len(effects) < burst.packets:
                continue
            if abs(burst.effect) > _TOGETHER * abs(sum(effects)):
                yield (
                    f"The {burst.packets} losses of {burst.when} interact: together they are "
                    f"worth {burst.effect:.2g}, and one by one {sum(effects):.2g} in all."
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
    folder: Path, point: Point, backend: Backend, metric: str | None, *, most: int, crew: int
) -> Answer:
    """Run a run's experiment once for each event, without the event, and measure one metric.

    Args:
        folder: the run's folder.
        point: its experiment.
        backend: the kernel and clock on which it ran.
        metric: the metric; None for the goodput of the first connection.
        most: the most events to try: bursts first, then the first losses of each.
        crew: number of runs at the same time.

    Raises: UsageError if the run is not one of this experiment, or has no such metric.
    """
    analysis = Analysis(folder)
    manifest = analysis.run.manifest
    if did := manifest.interventions:
        where = f"{manifest.experiment.id}/{manifest.run}"
        raise UsageError(f"{where}: has interventions", f"ask the original: {did.original}")
    refuse_unrepeatable(manifest, point, backend)
    name = metric or next((f"goodput.{c.name}" for c in analysis.run.connections), "utilisation")
    measured = compute_one(analysis, name)
    if measured is None or measured.value is None:
        what = "has no value in this run" if measured else "no such metric"
        guess = "" if measured else suggest(name, point.metrics)
        raise UsageError(f"--metric: {name:.80}: {what}{guess}", "the run's page lists its metrics")
    found, elsewhere = losses(analysis)
    found.sort(key=lambda e: (e.place, e.time_s))
    tried = _without(found[:most], (point, backend, folder, name), crew)
    events = [_valued(event, *got, measured.value) for event, got in tried]
    events.sort(key=lambda e: (-abs(e.effect or 0), e.effect is None, e.time_s))
    rest = len(found) - len(events)
    return Answer(str(folder), name, measured.unit, measured.value, tuple(events), rest, elsewhere)


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


def losses(analysis: Analysis) -> tuple[list[Event], int]:
    """List the losses of all drop-tail queues, and their bursts; count those of other queues."""
    found: list[Event] = []
    elsewhere, owners = 0, _owners(analysis)
    for view in analysis.queues.values():
        passed, elements = view.passed, analysis.run.elements(view.queue)
        refused = elements.refuse(passed.packets.time_ns, passed.packets.frame_bytes)
        in_time = passed.packets.time_ns < analysis.run.stop_ns
        rows = np.flatnonzero(passed.dropped & in_time & ~refused)
        link = analysis.run.manifest.profile.directions.get(view.queue.link or "")
        if link is None or not drops_when_full_alone(link):
            elsewhere += len(rows)
        elif len(rows):
            gaps = np.diff(passed.packets.time_ns[rows]) > analysis.longest_round_trip_ns
            for burst in np.split(rows, np.flatnonzero(gaps) + 1):
                found += _events(analysis, view, burst, len(found), owners)
    return found, elsewhere


def _events(
    analysis: Analysis, view: QueueView, rows: IntArray, burst: int, owners: _Owners
) -> Iterator[Event]:
    """Describe each loss of a burst, and the burst if it is more than one."""
    singles = [
        replace(_loss(analysis, view, row, owners), burst=burst, place=place)
        for place, row in enumerate(rows.tolist(), 1)
    ]
    if len(singles) > 1:
        first, last = singles[0], singles[-1]
        flows = {each.flow for each in singles}
        span = {"from_s": first.time_s, "until_s": round(last.time_s + 1e-9, 9)}
        yield replace(
            first,
            last_s=last.time_s,
            packets=len(singles),
            flow=first.flow if len(flows) == 1 else None,
            segment=None,
            place=0,
            intervention={"keep": {"queue": first.queue, **span}},
        )
    yield from singles


def _owners(analysis: Analysis) -> _Owners:
    """Find the connections of lost data, by time and sequence number."""
    return {
        key: name
        for name, view in analysis.connections.items()
        for lost in (analysis.lost(view),)
        for key in zip(lost.time_ns.tolist(), lost.seq.tolist(), strict=True)
    }


def _loss(analysis: Analysis, view: QueueView, row: int, owners: _Owners) -> Event:
    packet = view.passed.packets.where(slice(row, row + 1))
    time_ns, queue = int(packet.time_ns[0]), view.queue.direction
    time_s = (time_ns - START_NS) / 1e9
    asked: dict[str, Any] = {"queue": queue, "from_s": time_s}
    segment, name = None, owners.get((time_ns, int(packet.seq[0])))
    if name:
        (sequence,), _ = relative(packet.widened(), analysis.run.flows)
        asked |= {"flow": name, "sequence": int(sequence)}
        largest = analysis.connections[name].sent.payload_bytes.max()
        segment = int(sequence // largest) + 1
    elif at_once := row - int(np.searchsorted(view.passed.packets.time_ns, time_ns)):
        asked["packet"] = at_once + 1
    return Event(time_s, time_s, queue, 1, name, segment, 0, 0, {"keep": asked})


def _without(
    events: Sequence[Event], of: tuple[Point, Backend, Path, str], count: int
) -> list[tuple[Event, _Tried]]:
    """Run the experiment without each event, and measure the metric."""
    point, backend, original, metric = of
    task = partial(_measured_without, original, metric)
    with Steps() as steps, workers(count, task) as (executor, run):
        steps.begin("runs, each without one event", len(events))
        futures = []
        for event in events:
            asked = [Intervention.model_validate(event.intervention)]
            changed = point.experiment.model_copy(update={"interventions": asked})
            work = Work(point.id, replace(point, experiment=changed), backend, original)
            futures.append(executor.submit(run, work))
        found: list[tuple[Event, _Tried]] = []
        for event, future in zip(events, futures, strict=True):
            tried: Any = future.result()
            steps.advance()
            if isinstance(tried, Outcome):
                raise RunError(tried.error)
            found.append((event, tried))
    return found


def _measured_without(original: Path, metric: str, work: Work) -> _Tried:
    """Run one point in a folder of its own, and measure one metric; return it, or an error."""
    with tempfile.TemporaryDirectory(prefix="twoway-") as scratch:
        try:
            folder = run_experiment(work.point, work.backend, Path(scratch), beside=original)
        except RunError as error:
            return None, str(error)
        measured = compute_one(Analysis(folder), metric)
    return (measured.value if measured else None), ""
