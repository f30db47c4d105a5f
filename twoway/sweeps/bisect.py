"""Searching for the commit of a kernel with which an experiment's result changes."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from capture_analysis.errors import AnalysisError

from twoway.backends.uml import Uml
from twoway.contract.metrics import METRICS, Metrics
from twoway.contract.verdicts import Verdicts
from twoway.description.point import Point
from twoway.errors import DiskFullError, RunError, UsageError
from twoway.guest.cache import Guest
from twoway.guest.history import History
from twoway.guest.kernel import BuildError
from twoway.messages import suggest
from twoway.progress import Steps
from twoway.report.comparing import compare
from twoway.runs.packetdrill import Trial, attempt_trial
from twoway.runs.run import kept_run, run_watched
from twoway.sweeps.sweep import measure_run

# Possible differences of two runs, the most important first; "end": one of them did not end well.
Sign = Literal["end", "verdicts", "metrics", "packets"]
# Git quotes the word "bad" from version 2.55 on.
_FOUND = re.compile(r"^([0-9a-f]{40,64}) is the first '?bad'? commit$", re.MULTILINE)


@dataclass(frozen=True)
class Found:
    """The first bad commit.

    Attributes:
        sign: the difference between the good and the bad run.
        title: the commit's digits and subject.
        commit: its full name.
        good: run of the last good commit that was tried; None if a script is asked.
        bad: run of the commit; None if it failed.
    """

    sign: str
    title: str
    commit: str
    good: Path | None
    bad: Path | None


@dataclass(frozen=True)
class Ran:
    """A run on a commit.

    Attributes:
        folder: the run's folder; None if it failed, or if a script is asked.
        verdicts: the run's verdicts; None if it failed.
        problem: the reason why a run or a script failed; empty if it did not.
    """

    folder: Path | None = None
    verdicts: Verdicts | None = None
    problem: str = ""


class Experiment:
    """The question whether an experiment has another result."""

    def __init__(self, point: Point, results: Path, wanted: str | None) -> None:
        """Prepare the question.

        Args:
            point: the experiment.
            results: the folder of the runs.
            wanted: the difference: a Sign, or a metric whose value decides; None: the first Sign
                in which the two ends differ.

        Raises: UsageError if the experiment sets its own kernel, or has no such metric.
        """
        if kernel := point.experiment.kernel:
            raise UsageError(f"{point.id}: kernel: each commit's kernel is tried, got {kernel:.80}")
        known = (*get_args(Sign), *point.metrics)
        if wanted is not None and wanted not in known:
            raise UsageError(
                f"--question: {wanted:.80}: no such difference or metric{suggest(wanted, known)}",
                f"there are {', '.join(known)}",
            )
        self._point, self._results, self._wanted = point, results, wanted

    def ask_guest(self, guest: Guest) -> Ran:
        """Run the experiment."""
        backend = Uml(guest)
        try:
            folder = kept_run(self._point, backend, self._results)
            folder = folder or run_watched(self._point, backend, self._results)
            return Ran(folder, measure_run(folder))
        except DiskFullError:
            raise
        except (RunError, AnalysisError) as error:
            return Ran(problem=str(error))

    def sign(self, good: Ran, bad: Ran) -> str:
        """Return the difference of the two ends; UsageError if there is none."""
        if good.folder is None:
            raise UsageError(f"the run on the good commit fails: {good.problem}")
        for sign in [self._wanted] if self._wanted else get_args(Sign):
            if self.is_bad(sign, good, bad, bad):
                return str(sign)
        raise UsageError(
            f"good and bad have the same {self._wanted or 'verdicts, metrics and packets'}",
            "another experiment or point, or ends further apart",
        )

    def is_bad(self, sign: str, good: Ran, bad: Ran, other: Ran) -> bool:
        """Tell whether a run is as the bad one; RunError without a run to compare."""
        if sign == "end":
            return other.folder is None
        if not (good.folder and other.folder and good.verdicts and other.verdicts):
            raise RunError("no run to compare")
        if sign == "verdicts":
            return _judged(good.verdicts) != _judged(other.verdicts)
        if sign in get_args(Sign):
            document = compare([good.folder, other.folder])
            return bool(document.metrics if sign == "metrics" else document.partings)
        was, change, now = (_value(each.folder, sign) for each in (good, bad, other))
        return abs(now - was) > abs(now - change)  # nearer to the bad one


class Script:
    """The question whether a script of packetdrill passes."""

    def __init__(self, trial: Trial, binary: Path) -> None:
        self._trial, self._binary = trial, binary

    def ask_guest(self, guest: Guest) -> Ran:
        """Run the script; RunError if the guest fails."""
        tolerance = ("--tolerance_usecs=4000", "--tolerance_percent=12.5")
        return Ran(problem=attempt_trial(self._trial, guest, self._binary, tolerance).problem)

    def sign(self, good: Ran, bad: Ran) -> str:
        """Return which end passes; UsageError if both pass or fail."""
        if bool(good.problem) == bool(bad.problem):
            ends = "fails on" if bad.problem else "passes on"
            raise UsageError(f"{self._trial.name}: {ends} both ends")
        return f"fails: {bad.problem}" if bad.problem else f"passes, good fails: {good.problem}"

    def is_bad(self, sign: str, good: Ran, bad: Ran, other: Ran) -> bool:  # noqa: ARG002
        """Tell whether the script fails where it fails on the bad commit."""
        return bool(other.problem) == bool(bad.problem)


class Search:
    """A search from a good commit to a bad one, for the first that answers as the bad one."""

    def __init__(
        self, question: Experiment | Script, history: History, say: Callable[[str], None]
    ) -> None:
        """Prepare a search, which says what came of each commit; nothing is built yet."""
        self._question, self._history, self._say = question, history, say
        self._ran: dict[str, Ran] = {}

    def find(self, good: str, bad: str) -> Found:
        """Find the first bad commit after a good one that is an ancestor of a bad one.

        Raises: UsageError if nothing distinguishes them, or if the commits in question do not
            build or run; BuildError for the two ends.
        """
        with self._history.lock():
            return self._find(good, bad)

    def _find(self, good: str, bad: str) -> Found:
        git, first, last = self._history.git, *map(self._history.commit, (good, bad))
        try:
            git("merge-base", "--is-ancestor", first, last)
        except UsageError as error:
            raise UsageError(f"{good:.80} is no ancestor of {bad:.80}") from error
        ends = self._run(first), self._run(last)
        sign = self._question.sign(*ends)
        self._say(f"good {self._history.title(first)}")
        self._say(f"bad  {self._history.title(last)}; differs in: {sign}")
        git("bisect", "reset")
        said = git("bisect", "start", "--no-checkout", last, first)
        last_good, tried = first, {first, last}
        while not (found := _FOUND.search(said)):
            commit = git("rev-parse", "BISECT_HEAD")
            if commit in tried:
                raise UsageError(f"git bisect gives {commit[:12]} twice, and says: {said[:200]}")
            tried.add(commit)
            try:
                is_bad = self._question.is_bad(sign, *ends, self._run(commit))
                came_out = "bad" if is_bad else "good"
            except DiskFullError:
                raise
            except (BuildError, RunError) as error:
                came_out = "skip"
                self._say(error.reason if isinstance(error, BuildError) else str(error))
            last_good = commit if came_out == "good" else last_good
            self._say(f"{came_out:4} {self._history.title(commit)}")
            said = self._marked(came_out)
        commit = found[1]
        git("bisect", "reset")
        folders = self._run(last_good).folder, self._run(commit).folder
        return Found(sign, self._history.title(commit), commit, *folders)

    def _marked(self, came_out: str) -> str:
        git = self._history.git
        try:
            return git("bisect", came_out)
        except UsageError as error:
            if came_out == "good" and "skip" not in git("bisect", "log"):
                raise
            left = git("rev-list", "refs/bisect/bad", "--not", "--glob=refs/bisect/good-*")
            titles = map(self._history.title, left.split())
            raise UsageError(
                "\n".join(
                    ["one of these is the first bad commit; some do not build or run:", *titles]
                )
            ) from error

    def _run(self, commit: str) -> Ran:
        """Build a commit and ask it, unless done already."""
        if commit not in self._ran:
            with Steps() as steps:
                guest = self._history.guest(commit, steps)
            self._ran[commit] = self._question.ask_guest(guest)
            if problem := self._ran[commit].problem:
                self._say(f"{self._history.title(commit)}: {problem}")
        return self._ran[commit]


def _value(folder: Path | None, metric: str) -> float:
    """Read a run's metric; RunError if it is undefined."""
    assert folder
    value = Metrics.read(folder / METRICS).metrics[metric].value
    if value is None:
        raise RunError(f"{metric} is undefined in {folder}")
    return value


def _judged(said: Verdicts) -> list[str]:
    """List the run's exit code and the verdict on each statement."""
    return [str(said.exit_code), *(row.verdict.value for row in said.rows)]
