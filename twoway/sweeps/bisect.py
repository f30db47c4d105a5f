"""Searching for the commit of a kernel with which an experiment's result changes."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast, get_args

from capture_analysis.errors import AnalysisError

from twoway.backends.uml import Uml
from twoway.contract.verdicts import Verdicts
from twoway.description.point import Point
from twoway.errors import DiskFullError, RunError, UsageError
from twoway.guest.history import History
from twoway.guest.kernel import BuildError
from twoway.progress import Steps
from twoway.report.comparing import compare
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
        good: run of the last good commit that was tried.
        bad: run of the commit; None if it failed.
    """

    sign: Sign
    title: str
    commit: str
    good: Path
    bad: Path | None


@dataclass(frozen=True)
class Ran:
    """A commit's run and its verdicts; None if it failed."""

    folder: Path | None = None
    verdicts: Verdicts | None = None


class Search:
    """A search from a good commit to a bad one, for the first that differs from the good one.

    First the difference of the two ends is determined: one of them does not end, or verdicts,
    metrics or packets differ; the first of these that differs is used.
    """

    def __init__(
        self, point: Point, history: History, results: Path, say: Callable[[str], None]
    ) -> None:
        """Prepare a search; nothing is built yet.

        Args:
            point: the experiment.
            history: the repository.
            results: folder of the runs.
            say: called with the result of each commit.

        Raises: UsageError if the experiment sets its own kernel.
        """
        if kernel := point.experiment.kernel:
            raise UsageError(f"{point.id}: kernel: each commit's kernel is tried, got {kernel:.80}")
        self._case, self._history, self._results, self._say = point, history, results, say
        self._ran: dict[str, Ran] = {}

    def find(self, good: str, bad: str) -> Found:
        """Find the first bad commit.

        Args:
            good: a revision, an ancestor of `bad`.
            bad: a revision.

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
        start = self._run(first)
        if start.folder is None:
            raise UsageError(f"the run on {good:.80} fails")
        sign = _sign(start, self._run(last))
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
                came_out = "bad" if _differs(sign, start, self._run(commit)) else "good"
            except DiskFullError:
                raise
            except (BuildError, RunError) as error:
                came_out = "skip"
                self._say(_reason(error))
            last_good = commit if came_out == "good" else last_good
            self._say(f"{came_out:4} {self._history.title(commit)}")
            said = self._marked(came_out)
        commit = found[1]
        git("bisect", "reset")
        before = self._run(last_good).folder
        assert before
        return Found(sign, self._history.title(commit), commit, before, self._run(commit).folder)

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
        """Build a commit and run the experiment on it, unless done already."""
        if commit not in self._ran:
            with Steps() as steps:
                backend = Uml(self._history.guest(commit, steps))
            point = self._case
            folder = kept_run(point, backend, self._results)
            try:
                folder = folder or run_watched(point, backend, self._results)
                self._ran[commit] = Ran(folder, measure_run(folder))
            except DiskFullError:
                raise
            except (RunError, AnalysisError) as error:
                self._say(f"{self._history.title(commit)}: {error}")
                self._ran[commit] = Ran()
        return self._ran[commit]


def _sign(good: Ran, bad: Ran) -> Sign:
    for sign in get_args(Sign):
        if _differs(sign, good, bad):
            return cast("Sign", sign)
    raise UsageError(
        "good and bad have the same verdicts, metrics and packets",
        "another experiment or point, or ends further apart",
    )


def _reason(error: Exception) -> str:
    """Return the most informative line of an error: a compiler's, if there is one."""
    lines = str(error).splitlines()
    return next((line for line in lines if "error:" in line), lines[0])


def _differs(sign: Sign, good: Ran, other: Ran) -> bool:
    """Tell whether a run differs from the good one; RunError without a run to compare."""
    if sign == "end":
        return other.folder is None
    if not (good.folder and other.folder and good.verdicts and other.verdicts):
        raise RunError("no run to compare")
    if sign == "verdicts":
        return _judged(good.verdicts) != _judged(other.verdicts)
    document = compare([good.folder, other.folder])
    return bool(document.metrics if sign == "metrics" else document.partings)


def _judged(said: Verdicts) -> list[str]:
    """List the run's exit code and the verdict on each statement."""
    return [str(said.exit_code), *(row.verdict.value for row in said.rows)]
