"""Classes: the hand-ins of students, marked in a suite's situations beside the suite's columns.

A hand-in is a congestion control in C, or a file with the fields that the suite's exercise leaves
to students. A hand-in that does not build, crashes or loops loses its own marks only, as each
request of evaluate.py ends alone.
"""

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import zip_longest
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any, NamedTuple

from pydantic import Field

from twoway.backends.backend import Backend
from twoway.contract.files import read_whole
from twoway.contract.model import Model, text
from twoway.contract.statements import label
from twoway.contract.suite import AXIS
from twoway.description.draws import source
from twoway.description.experiment import MOST_SEEDS
from twoway.description.matrix import Value, drop_axis, point_name
from twoway.description.point import Point
from twoway.description.reading import ExperimentSource, document_of, validate_document
from twoway.description.suite import LoadedSuite
from twoway.errors import RunError, SpecError, UsageError
from twoway.report.card import goodness, worst_of
from twoway.report.class_page import Mark, Marked
from twoway.runs.identity import identity
from twoway.runs.points import load_points
from twoway.sweeps.evaluate import evaluate

_MOST_BYTES = 1 << 20
_ENDINGS = {".c", ".yml", ".yaml"}
_FLOWS = "flows"
# What comes before the name of a column; no student's name has a slash.
_COLUMN = "column/"
# The seeds of the runs that students make for themselves: none, and those of `--seeds 3`.
_AT_HOME = (None, 3)
# What an error of a request means, in words for the student; the rest is skipped after these.
_WORDS = {
    "compiler": "your C file does not compile",
    "time": "a run with your code does not end in time: look for an endless loop",
    "request": "your file cannot be used",
}
# The name under which a student's file is compiled.
_FILE = re.compile(r"^tcp_evaluated\.c:", re.MULTILINE)
_CRASH, _BROKEN = "your code crashes the kernel", "a run with your code fails"
_DOUBT = "a check of a run with your code fails"


class Fields(Model):
    """A hand-in that is no C file."""

    set: dict[str, Value] = Field(
        default={}, description="fields that the exercise leaves to students, with their values"
    )
    runs: list[Annotated[str, text("^[0-9a-f]{6,64}$", "6 to 64 digits of an identity")]] = Field(
        default=[],
        description="the first digits of the identities of the student's own runs, in quotes",
    )


@dataclass(frozen=True)
class HandIn:
    """A hand-in of a student.

    Attributes:
        student: the student's number or name: the file's name without its ending, or the folder's.
        sha256: of the file.
        control: the source of a C file.
        fields: the content of a .yml file.
        wrong: why it cannot be used.
    """

    student: str
    sha256: str = ""
    control: str = ""
    fields: Fields | None = None
    wrong: str = ""


class Job(NamedTuple):
    """A run to make: a column's, or a student's."""

    who: str
    own: HandIn | None
    point: Point
    seed: int


def read_hand_ins(folder: Path, suite: LoadedSuite) -> list[HandIn]:
    """Read the hand-ins of a folder: a file, or a folder with one file, for each student.

    Raises: UsageError if there is none.
    """
    found: dict[str, list[Path]] = {}
    for entry in sorted(folder.iterdir()):
        inside = sorted(entry.iterdir()) if entry.is_dir() and not entry.is_symlink() else [entry]
        files = [path for path in inside if path.suffix in _ENDINGS and path.name[0] != "."]
        if files or entry not in inside:
            student = student_of(entry.stem if entry in inside else entry.name)
            found.setdefault(student, []).extend(files)
    if not any(found.values()):
        raise UsageError(
            f"{folder}: no hand-in", "STUDENT.c, STUDENT.yml, or a folder STUDENT with one of them"
        )
    return [_hand_in(student, files, suite) for student, files in found.items()]


def student_of(name: str) -> str:
    """Return a student's number or name with letters, digits, "_", "-" and "." alone."""
    return re.sub(r"[^\w.-]", "_", name)


def _hand_in(student: str, files: Sequence[Path], suite: LoadedSuite) -> HandIn:
    if len(files) != 1:
        names = ", ".join(path.name for path in files) or "none"
        return HandIn(student, wrong=f"hand in one C file or one .yml file, got {names}")
    (path,) = files
    try:
        content = read_whole(path.parent, path.name, _MOST_BYTES)
        words = content.decode()
    except (OSError, ValueError) as error:
        return HandIn(student, wrong=f"{path.name}: cannot be read as text: {error}")
    digest = hashlib.sha256(content).hexdigest()
    if path.suffix == ".c":
        return HandIn(student, digest, control=f"{words}\n")
    try:
        fields = validate_document(path.name, document_of(Path(path.name), words), Fields)
    except SpecError as error:
        names = " and ".join(f"`{name}`" for name in Fields.model_fields)
        return HandIn(student, digest, wrong=f"{error}; a hand-in may have {names}")
    if not fields.set and not fields.runs:
        return HandIn(student, digest, wrong=f"{path.name}: has neither `set` nor `runs`")
    may = suite.said.exercise.sets if suite.said.exercise else []
    wrong = [f"{path.name}: set.{each}: not yours to set" for each in fields.set if each not in may]
    said = [*wrong, f"the exercise has {', '.join(may) or 'no such field'}"] if wrong else []
    return HandIn(student, digest, fields=fields, wrong="; ".join(said))


def draws_of(suite: LoadedSuite, student: str) -> dict[str, str]:
    """Draw a student's value of each axis of the exercise, from the student's number.

    Raises: SpecError if no row has an axis.
    """
    found = {}
    for axis in suite.said.exercise.draws if suite.said.exercise else ():
        points = (point for row in suite.experiments for point in _points(row))
        values = dict.fromkeys(label(p.values[axis]) for p in points if axis in p.values)
        if not values:
            raise SpecError([f"suite {suite.name}: exercise.draws: {axis}: no row has this axis"])
        found[axis] = source(0, f"{student} {axis}").choice([*values])
    return found


def places_of(suite: LoadedSuite, draws: Mapping[str, str]) -> list[Point]:
    """List the points of a student, each with the suite's first control."""
    return [
        point
        for row in suite.experiments
        for point in _points(row)
        if point.values[AXIS] == suite.said.columns[0]
        if all(label(point.values.get(axis, value)) == value for axis, value in draws.items())
    ]


@cache
def _points(row: ExperimentSource, seeds: int | None = None) -> list[Point]:
    return load_points(row, seeds)


def hidden_seeds(secret: str, count: int) -> list[int]:
    """Return the seeds 1 to `count`, or those that follow from a secret."""
    if not secret:
        return [*range(1, count + 1)]
    return sorted(source(0, secret).sample(range(1, MOST_SEEDS + 1), count))


class _Class:
    """The runs of a class: what each student and each column has at each place."""

    def __init__(self, suite: LoadedSuite, file: str, hand_ins: Sequence[HandIn]) -> None:
        self.suite, self.file = suite, file
        self.values: dict[tuple[str, str, str], list[float | None]] = {}
        self.units: dict[tuple[str, str], str] = {}
        self.flows: dict[str, int] = {}
        self.why = {each.student: each.wrong for each in hand_ins if each.wrong}
        self.ended = {*self.why}

    def line(self, number: int, job: Job) -> str:
        """Write a job as a request of `evaluate`."""
        row = job.point.id.partition("@")[0]
        metrics = [each.metric for each in self.suite.rows[row].shows]
        request: dict[str, Any] = {
            "id": number,
            "environment": f"{self.file}/{row.removeprefix(f'{self.suite.name}-')}@"
            + point_name(drop_axis(AXIS, job.point.values)),
            "control": (job.own.control if job.own else job.who.removeprefix(_COLUMN))
            or self.suite.said.columns[0],
            "seed": job.seed,
            "metrics": [*metrics, f"{_FLOWS}=count(goodput.*)"],
            "set": job.own.fields.set if job.own and job.own.fields else {},
        }
        return json.dumps(request)

    def take(self, job: Job, answer: Mapping[str, Any]) -> None:
        """Take the numbers of a run, or the words of its error.

        Raises: RunError if a column has no sound run.
        """
        error = answer.get("error") or {}
        doubt = "" if error or answer["sound"] else f"{answer['fidelity'][0]['check']}"
        if job.own is None and (error or doubt):
            raise RunError(f"{job.point.id}: {error.get('message') or doubt}")
        if error or doubt:
            kind, said = error.get("kind", ""), error.get("message", doubt)
            crash = "panic" in said or "kernel complained" in said
            words = _WORDS.get(kind) or (_CRASH if crash else _BROKEN if error else _DOUBT)
            if kind == "compiler":
                said = _FILE.sub("line ", said.partition(":\n")[2] or said)
            self.why.setdefault(job.who, f"{words}: {said}")
            self.ended |= {job.who} if kind in _WORDS else set()
            return
        at = _at(job.point)
        metrics = dict(answer["metrics"])
        self.flows[at] = int(metrics.pop(_FLOWS)["value"] or 0)
        for name, metric in metrics.items():
            self.units[at, name] = metric["unit"]
            self.values.setdefault((job.who, at, name), []).append(metric["value"])

    def mean(self, who: str, at: str, metric: str) -> float | None:
        """Return the mean over the seeds; None if a seed has no value."""
        found = self.values.get((who, at, metric), [None])
        return None if None in found else fmean(each for each in found if each is not None)

    def marks(self, hand_in: HandIn, places: Sequence[Point]) -> Iterator[Mark]:
        """Compare a student's numbers with the best of the columns, and of the student's own."""
        for point in places:
            at = _at(point)
            for shown in self.suite.rows[point.id.partition("@")[0]].shows:
                columns = (f"{_COLUMN}{name}" for name in self.suite.said.columns)
                every = (self.mean(column, at, shown.metric) for column in columns)
                found = [value for value in every if value is not None]
                value = self.mean(hand_in.student, at, shown.metric)
                if value is not None:
                    found.append(value)
                share, best = 0.0, shown.best(found) if found else 0.0
                if value is not None and hand_in.student not in self.ended:
                    worst = worst_of(shown.metric, self.flows[at])
                    share = min(max(goodness(value, best, shown.better, worst), 0.0), 1.0)
                unit = self.units.get((at, shown.metric), "1")
                row, _, place = at.partition("@")
                yield Mark(row, place, shown, unit, value, best, share)


def _at(point: Point) -> str:
    """Return the name of a point without its control."""
    return f"{point.id.partition('@')[0]}@{point_name(drop_axis(AXIS, point.values))}"


def jobs_of(suite: LoadedSuite, hand_ins: Sequence[HandIn], seeds: Sequence[int]) -> list[Job]:
    """List the runs of a class: the suite's columns at all places, then each hand-in at its own.

    Raises: SpecError for a wrong exercise.
    """
    places = {each.student: places_of(suite, draws_of(suite, each.student)) for each in hand_ins}
    every = {point.id: point for each in places.values() for point in each}
    columns = [
        Job(f"{_COLUMN}{column}", None, point, seed)
        for point in every.values()
        for column in suite.said.columns
        for seed in seeds
    ]
    own = (
        [Job(each.student, each, p, seed) for p in places[each.student] for seed in seeds]
        for each in hand_ins
        if not each.wrong
    )
    # In turn, so that an error is known before the student's next run begins.
    return [*columns, *(job for turn in zip_longest(*own) for job in turn if job)]


def mark_class(
    suite: LoadedSuite,
    file: str,
    hand_ins: Sequence[HandIn],
    jobs: Sequence[Job],
    backend: Backend,
    *,
    count: int,
    longest_s: float,
    on_answer: Callable[[str, bool], None],
) -> list[Marked]:
    """Run every hand-in and the suite's columns at all places; mark and rank them.

    `file` is the suite's name or file, as `evaluate` finds it. `on_answer` gets a line about each
    run that ends, and True if it was kept.

    Returns: the best first.
    Raises: RunError if a column has no sound run somewhere.
    """
    runs = _Class(suite, file, hand_ins)
    draws = {each.student: draws_of(suite, each.student) for each in hand_ins}
    lines = (runs.line(n, job) for n, job in enumerate(jobs) if job.who not in runs.ended)
    for answer in evaluate(lines, backend, count=count, longest_s=longest_s):
        job = jobs[answer["id"]]
        runs.take(job, answer)
        on_answer(f"{job.who.removeprefix(_COLUMN)}: {_at(job.point)}", answer.get("kept", False))
    marked = [
        Marked(
            each.student,
            each.sha256,
            draws[each.student],
            tuple(runs.marks(each, places_of(suite, draws[each.student]))),
            runs.why.get(each.student, ""),
            tuple(_foreign(each, suite, draws[each.student], backend)),
        )
        for each in hand_ins
    ]
    return sorted(marked, key=lambda each: (-each.points, each.student))


def _foreign(
    hand_in: HandIn, suite: LoadedSuite, draws: Mapping[str, str], backend: Backend
) -> Iterator[str]:
    """Yield the identities that are of no run of the suite at the student's places."""
    if not hand_in.fields or not hand_in.fields.runs:
        return
    own = [
        identity(point, backend)
        for row in suite.experiments
        for seeds in _AT_HOME
        for point in _points(row, seeds)
        if all(label(point.values.get(axis, value)) == value for axis, value in draws.items())
    ]
    for run in hand_in.fields.runs:
        if not any(each.startswith(run) for each in own):
            yield run
