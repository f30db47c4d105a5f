"""Progress on standard error: of builds, of a run, and of a sweep."""

import time
from datetime import timedelta
from types import TracebackType
from typing import Self

from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    Task,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)
from rich.text import Text

from twoway.messages import console, say


class Steps:
    """A display of steps with a bar; in a file, a line per step and for each tenth of it."""

    def __init__(self) -> None:
        self._progress = Progress(
            TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), console=console()
        )
        self._task: TaskID | None = None
        self._said_percent = 0

    def __enter__(self) -> Self:
        if console().is_terminal:
            self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None:
            self._finish()
        self._progress.stop()

    def begin(self, what: str, total: int | None = None) -> None:
        """Finish the current step, if any, and start another of `total` units."""
        self._finish()
        self._task = self._progress.add_task(what, total=total)
        self._said_percent = 0
        if not console().is_terminal:
            console().print(f"{what} ...")

    def advance(self) -> None:
        """Advance the current step's bar by one unit."""
        if self._task is None:
            return
        self._progress.advance(self._task)
        task = self._progress.tasks[self._task]
        percent = 10 * int(task.percentage // 10)
        if not console().is_terminal and self._said_percent < percent < 100:
            self._said_percent = percent
            console().print(f"{task.description}: {percent} % after {task.elapsed or 0:.0f} s")

    def _finish(self) -> None:
        if self._task is not None:
            task = self._progress.tasks[self._task]
            self._progress.update(self._task, total=task.total or 1, completed=task.total or 1)


class _Live:
    """A display that is there as long as a `with`."""

    _progress: Progress

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()


class RunClock(_Live):
    """A run's live line: times, speed, current goodput and queue."""

    def __init__(self, title: str, start_ns: int, stop_ns: int) -> None:
        self._start_ns = start_ns
        self._traffic_began: float | None = None
        self._last = (start_ns, 0)
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[now]}"),
            console=console(),
            transient=True,
            disable=not console().is_terminal,
        )
        self._task = self._progress.add_task(title, total=stop_ns - start_ns, now="booting")

    def show(self, time_ns: int, acked_bytes: int, queued_packets: int) -> None:
        """Show a report of the guest."""
        now = time.monotonic()
        if time_ns < self._start_ns:
            self._progress.update(self._task, now="setting up")
            return
        self._traffic_began = self._traffic_began or now
        simulated_s = (time_ns - self._start_ns) / 1e9
        factor = simulated_s / max(now - self._traffic_began, 0.01)
        last_ns, last_bytes = self._last
        # Connections that have ended are not in acked_bytes any more.
        goodput = max(acked_bytes - last_bytes, 0) * 8e3 / max(time_ns - last_ns, 1)
        self._last = (time_ns, acked_bytes)
        self._progress.update(
            self._task,
            completed=time_ns - self._start_ns,
            now=f"{simulated_s:.1f} s simulated in {now - self._traffic_began:.1f} s,"
            f" {factor:.0f}x, {goodput:.3g} Mbit/s, {queued_packets} queued",
        )


class SweepBar(_Live):
    """A bar of a sweep's progress; in a file, one line per point."""

    def __init__(self, points: int, cost: float) -> None:
        self._points, self._done = points, 0
        self._ran, self._to_run = 0.0, cost
        self._began = self._ended = time.monotonic()
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TimeElapsedColumn(),
            TextColumn("left"),
            _TimeLeft(self),
            console=console(),
            transient=True,
            disable=not console().is_terminal,
        )
        self._task = self._progress.add_task(self._count(), total=cost)

    def show(self, text: str, cost: float, *, kept: bool) -> None:
        """Print a line about a finished point; advance the bar by its cost if it was run now."""
        self._done += 1
        if kept:
            self._to_run -= cost
        else:
            self._ran += cost
            self._ended = time.monotonic()
        self._progress.update(
            self._task, total=self._to_run, completed=self._ran, description=self._count()
        )
        say(text, markup=True)

    def left_s(self, now: float) -> float | None:
        """Estimate the time left, s, from the points that ran; None before the first."""
        if not self._ran:
            return None
        left_s = (self._ended - self._began) * (self._to_run - self._ran) / self._ran
        return max(left_s - (now - self._ended), 0)

    def _count(self) -> str:
        return f"{self._done} of {self._points} points"


class _TimeLeft(ProgressColumn):
    """The time left of a sweep's bar."""

    def __init__(self, bar: SweepBar) -> None:
        self._bar = bar
        super().__init__()

    def render(self, task: Task) -> Text:  # noqa: ARG002 - the bar knows more
        """Format the time as rich does."""
        left_s = self._bar.left_s(time.monotonic())
        return Text("-:--:--" if left_s is None else str(timedelta(seconds=round(left_s))))
