"""Searching for small experiments in which a congestion control does badly.

Hypothesis draws links, losses, cross traffic and starts, and shrinks each find: to the first value
of each field, and to the shortest time. Runs are exact, so a result is no noise, and the same seed
draws the same experiments: results of earlier ones are kept by the identity of their run.
"""

import json
import math
import random
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import yaml
from hypothesis import Phase, find, settings, target
from hypothesis import strategies as st
from hypothesis.errors import NoSuchExample

from twoway.backends.backend import Backend
from twoway.description.point import Point
from twoway.errors import DiskFullError, RunError, SpecError, UsageError
from twoway.measure.analysis import Analysis
from twoway.measure.document import compute_one
from twoway.runs.identity import identity
from twoway.runs.points import load_point
from twoway.runs.run import kept_run, run_experiment
from twoway.sweeps.sweep import Work
from twoway.sweeps.why import ask
from twoway.sweeps.workers import run_each

# Values of each field, the simplest first. At these rates a byte takes whole nanoseconds.
_LINK = {
    "rate_mbit": (8, 2, 20, 50),
    "delay_ms": (10, 1, 5, 20, 40, 80),
    "queue_bdp": (1, 0.5, 0.25, 0.1, 2, 4),
    "loss_percent": (0, 0.1, 1),
}
_BESIDE = {"rival": ("cubic", "reno"), "rival_start_s": (0, 1)}
# All packets are lost for a time, periodically: what a shrew's bursts do.
_BURSTS = {"every_s": (1, 0.5, 0.3, 0.25), "for_ms": (50, 100)}
_WITHOUT_LOSS = {"loss_percent": (0,)}
_SECONDS = (4, 16)
# A DTM channel that follows the rate; a slot has 512 kbit/s.
_DTM = {"slots": 20, "max_slots": 20, "rate": {"sample_ms": 100, "estimate_mbit": 0}}
_DTM_MBIT = 10.24
# Bytes of a full frame, and of a frame besides the payload.
_FRAME, _HEADERS = 1514, 66
# The most events that are tried to name a find's cause.
_MOST_EVENTS = 8
# An event decides if the metric is more than this share larger without it.
_DECIDES = 0.5
# The shortest queue, packets.
_LEAST_QUEUE = 4

Setting = Mapping[str, Any]


class Goal(NamedTuple):
    """A way to do badly.

    Attributes:
        says: what the control does, in words.
        metric: the metric that shows it.
        fields: values of fields besides those of the link, the simplest first.
        limit: the badness from which on an experiment is a find.
        badness: of a run's values, and the link's share that is the control's, Mbit/s.
    """

    says: str
    metric: str
    fields: Mapping[str, Sequence[Any]]
    limit: float
    badness: Callable[[Mapping[str, float], float], float]


def _unused(values: Mapping[str, float], free_mbit: float) -> float:
    """Return the share of a link's capacity that a control leaves unused."""
    return 1 - values["mine"] / free_mbit


GOALS: Mapping[str, Goal] = {
    "starves": Goal(
        "gets less than a tenth beside another",
        "goodput.mine",
        _BESIDE,
        0.9,
        lambda v, _: v["other"] / max(v["mine"] + v["other"], 1e-9),
    ),
    "harms": Goal(
        "leaves another less than a tenth",
        "goodput.other",
        _BESIDE,
        0.9,
        lambda v, _: v["mine"] / max(v["mine"] + v["other"], 1e-9),
    ),
    "loses": Goal("uses less than half of a link", "goodput.mine", {}, 0.5, _unused),
    "shrew": Goal(
        "uses less than half of a link beside periodic bursts of losses",
        "goodput.mine",
        {**_WITHOUT_LOSS, **_BURSTS},
        0.5,
        _unused,
    ),
    "locks": Goal(
        "uses less than half of a DTM channel that follows its rate",
        "goodput.mine",
        {**_WITHOUT_LOSS, "rate_mbit": (8,), "dtm": (True,), "queue_bdp": (0.1, 0.25, 0.5, 1)},
        0.5,
        _unused,
    ),
    "stalls": Goal(
        "sends nothing for a second beside periodic bursts of losses",
        "goodput.mine",
        _BURSTS,
        1.0,
        lambda v, _: v["silence_s"],
    ),
}


@dataclass(frozen=True)
class Find:
    """An experiment in which a control does badly.

    Attributes:
        goal: a name of GOALS.
        file: its file; `run` is its run's folder.
        badness: by the goal's measure.
        cause: the event without which the metric is better by half; or that there is none.
    """

    goal: str
    file: str
    run: str
    badness: float
    cause: str


def document_of(control: str, setting: Setting, title: str) -> dict[str, Any]:
    """Write an experiment of one setting, without fields that have their simplest value."""
    rate = _DTM_MBIT if setting.get("dtm") else setting["rate_mbit"]
    packets = rate * 1e6 * 2 * setting["delay_ms"] / 1e3 / 8 / _FRAME
    queue = max(_LEAST_QUEUE, round(setting["queue_bdp"] * packets))
    back = {"rate_mbit": setting["rate_mbit"], "delay_ms": setting["delay_ms"]}
    forward = {"dtm": _DTM, "delay_ms": setting["delay_ms"]} if setting.get("dtm") else back
    loss = {"loss": {"percent": setting["loss_percent"]}} if setting["loss_percent"] else {}
    if every_s := setting.get("every_s"):
        clear = [[0, 0], [round(every_s - setting["for_ms"] / 1e3, 3), 100]]
        loss = {"loss": {"schedule": clear, "repeat_s": every_s}}
    ends = {"from": "h1", "to": "h2"}
    flows = [{"name": "mine", **ends, "congestion": control}]
    document: dict[str, Any] = {
        "schema": 1,
        "title": title,
        "topology": {"name": "two_node"},
        "profile": {
            "directions": {
                "forward": {**forward, "queue_packets": queue, **loss},
                "reverse": {**back, "queue_packets": 1000},
            }
        },
        "stack": {"preset": "linux"},
        "flows": flows,
        "duration_s": setting["seconds"],
        "warm_up_s": setting["seconds"] / 2,
    }
    if rival := setting.get("rival"):
        start = {"start_s": s} if (s := setting["rival_start_s"]) else {}
        flows.append({"name": "other", **ends, "congestion": rival, **start})
    return document


def free_mbit(setting: Setting) -> float:
    """Return the payload that a setting's link can carry beside losses, Mbit/s."""
    rate = _DTM_MBIT if setting.get("dtm") else setting["rate_mbit"]
    lost = setting["loss_percent"] / 100
    if every_s := setting.get("every_s"):
        lost = setting["for_ms"] / 1e3 / every_s
    return float(rate * (1 - _HEADERS / _FRAME) * (1 - lost))


def values_of(folder: Path) -> dict[str, float]:
    """Measure a run: goodput of the control and of its rival, and the longest silence."""
    analysis = Analysis(folder)
    found = {}
    for name in analysis.connections:
        measured = compute_one(analysis, f"goodput.{name}")
        found[name] = (measured and measured.value) or 0.0
    sent_ns = analysis.connections["mine"].sent.data().time_ns
    times_ns = np.append(sent_ns[sent_ns < analysis.run.stop_ns], analysis.run.stop_ns)
    return {**found, "silence_s": float(np.diff(times_ns).max(initial=0)) / 1e9}


class _TimeUp(BaseException):
    """The end of the budget or the disk; Hypothesis would take an Exception for a find."""


class _Search:
    """The search for one goal, with the results of earlier searches."""

    def __init__(self, control: str, work: Work, deadline: float) -> None:
        self._control, self._work, self._deadline = control, work, deadline
        self._goal = GOALS[work.name]
        self._kept = work.results / "hunt.jsonl"
        self._known: dict[str, dict[str, float]] = dict(_lines(self._kept))
        self.best: tuple[Setting, float] | None = None
        self.runs = 0

    def is_find(self, setting: Setting) -> bool:
        """Tell whether a setting is a find, and keep the smallest."""
        values = self._values(setting)
        if values is None:
            return False
        badness = self._goal.badness(values, free_mbit(setting))
        target(badness)
        if badness < self._goal.limit:
            return False
        if self.best is None or self._size(setting) < self._size(self.best[0]):
            self.best = setting, badness
        return True

    def _size(self, setting: Setting) -> tuple[int, int, int]:
        """Return the number of fields with another than their simplest value, and the time."""
        fields = {**_LINK, **self._goal.fields}
        places = [values.index(setting[name]) for name, values in fields.items()]
        return sum(place > 0 for place in places), setting["seconds"], sum(places)

    def _values(self, setting: Setting) -> dict[str, float] | None:
        """Run a setting, unless its result is kept; None if the run fails."""
        with tempfile.TemporaryDirectory(prefix="twoway-") as scratch:
            document = document_of(self._control, setting, "hunt")
            point = _written(Path(scratch, "hunt.yml"), document)
            key = identity(point, self._work.backend)
            if key in self._known:
                return self._known[key] or None
            if time.monotonic() > self._deadline:
                raise _TimeUp
            found: dict[str, float] = {}
            try:
                found = values_of(run_experiment(point, self._work.backend, Path(scratch)))
            except DiskFullError as error:
                raise _TimeUp from error
            except RunError:  # no find, and none the next time
                pass
        self.runs += 1
        self._known[key] = found
        line = json.dumps({"identity": key, "values": found}) + "\n"
        with self._kept.open("a") as file_of_all:  # one write: searches share the file
            file_of_all.write(line)
        return found or None


def _lines(kept: Path) -> Iterator[tuple[str, dict[str, float]]]:
    """Read the results of earlier searches; a line that is cut short is left out."""
    for line in kept.read_text("utf-8").splitlines() if kept.exists() else ():
        with suppress(ValueError, KeyError, TypeError):
            read = json.loads(line)
            yield read["identity"], {name: float(v) for name, v in read["values"].items()}


def _search(
    control: str, seed: int, lasts_s: float, work: Work
) -> tuple[tuple[Setting, float] | None, int]:
    """Search for one goal; return the smallest find with its badness, and the number of runs."""
    search = _Search(control, work, time.monotonic() + lasts_s)
    fields = {n: st.sampled_from(v) for n, v in {**_LINK, **GOALS[work.name].fields}.items()}
    space = st.fixed_dictionaries({**fields, "seconds": st.integers(*_SECONDS)})
    phases = (Phase.generate, Phase.target, Phase.shrink)  # no explanation, which costs runs
    unlimited = settings(max_examples=10**6, deadline=None, database=None, phases=phases)
    with suppress(_TimeUp, NoSuchExample):
        find(space, search.is_find, settings=unlimited, random=random.Random(seed))  # noqa: S311
    return search.best, search.runs


class Hunt(NamedTuple):
    """A search and its places.

    Attributes:
        control: a congestion control that an experiment may name.
        backend: the kernel and clock to run on.
        folder: where finds, and results of the search, are kept.
        results: where runs of finds are kept.
        crew: number of goals that are searched for at once, and of runs that ask why.
    """

    control: str
    backend: Backend
    folder: Path
    results: Path
    crew: int


def hunt(asked: Hunt, budget_s: float, seed: int) -> tuple[list[Find], int]:
    """Search for each goal, run the finds, and ask why.

    Returns: the finds, and the number of runs that the search made.
    Raises: UsageError if an experiment cannot name the control.
    """
    at_once = min(asked.crew, len(GOALS))
    lasts_s = budget_s / math.ceil(len(GOALS) / at_once)
    simplest = {name: values[0] for name, values in _LINK.items()}
    with tempfile.TemporaryDirectory(prefix="twoway-") as scratch:
        document = document_of(asked.control, {**simplest, "seconds": _SECONDS[0]}, "hunt")
        try:
            point = _written(Path(scratch, "hunt.yml"), document)
        except SpecError as error:
            problem = error.problems[0].partition("hunt.yml: flows.0.")[2]
            raise UsageError(f"{asked.control:.80}: not to be hunted: {problem}") from error
    found: dict[str, tuple[Setting, float]] = {}
    runs, task = 0, partial(_search, asked.control, seed, lasts_s)
    works = [Work(name, point, asked.backend, asked.folder) for name in GOALS]
    what = f"goals, at most {lasts_s:.0f} s for each"
    for name, (best, made) in zip(GOALS, run_each(works, task, at_once, what), strict=True):
        found |= {name: best} if best else {}
        runs += made
    return [_explained(asked, name, *best) for name, best in found.items()], runs


def _written(file: Path, document: dict[str, Any]) -> Point:
    """Write an experiment's file, and read it as `twoway run` does."""
    file.write_text(yaml.safe_dump(document, sort_keys=False), "utf-8")
    return load_point(str(file))


def _explained(asked: Hunt, name: str, setting: Setting, badness: float) -> Find:
    """Write a find's experiment, run it, and find out which event decides it."""
    goal, file = GOALS[name], asked.folder / f"{asked.control}-{name}.yml"
    point = _written(file, document_of(asked.control, setting, f"{asked.control} {goal.says}"))
    backend, results = asked.backend, asked.results
    run = kept_run(point, backend, results) or run_experiment(point, backend, results)
    answer = ask(run, point, backend, goal.metric, most=_MOST_EVENTS, crew=asked.crew)
    better = [e for e in answer.events if (e.effect or 0) > _DECIDES * answer.value]
    cause = "no single event"
    if better:
        cause = "a time-out" if better[0].timeout_s else better[0].text
    return Find(name, str(file), str(run), badness, cause)
