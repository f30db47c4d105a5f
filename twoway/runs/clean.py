"""Finding what can be removed: failed and old runs, captures, and kernels in the cache."""

import math
import time
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

from twoway.contract.folders import disk_bytes, remove_folder
from twoway.guest import smp_kernel
from twoway.guest.cache import kernel_folder, lock_if_free
from twoway.guest.source import FETCHED, Flavour, fetched_source
from twoway.manifest import CAPTURES, FAILED, MANIFEST, SAMPLES
from twoway.paths import cache
from twoway.runs.finding import finished_runs_of

# What a command keeps of its runs: captures and samples, or documents, metrics and pages alone.
ALL, NONE = "captures", "metrics"
# The room for captures of a command that is not asked to keep all.
ROOM_BYTES = 1_000_000_000
_DAY_S = 24 * 3600
# Prefix of the name of a folder that is being removed.
_GOING = ".removing-"


def removable(results: Path, keep: int | None, days: float | None) -> Iterator[tuple[Path, str]]:
    """Find runs that can be removed: failed ones, ones that cannot be analysed, and old ones.

    Runs in progress, and folders that are no runs, are never among them.

    Args:
        results: folder that holds one folder per experiment or point.
        keep: number of finished runs of each that stay at least, the newest; None: all.
        days: time for which finished runs stay at least; None: no limit.

    Yields: a run's folder, and the reason why it can be removed.
    """
    for experiment in sorted(results.glob("*")):
        if experiment.is_symlink() or not experiment.is_dir():
            continue
        yield from ((path, "half removed") for path in sorted(experiment.glob(f"{_GOING}*")))
        yield from ((path, "failed") for path in sorted(experiment.glob("[0-9]*.partial")))
        finished = finished_runs_of(experiment)
        useless = [run for run in finished if (run / FAILED).is_file()]
        yield from ((run, "cannot be analysed") for run in reversed(useless))
        if keep is None and days is None:
            continue
        useful = [run for run in finished if run not in useless]
        for run in reversed(useful[keep or 0 :]):
            age_days = (time.time() - (run / MANIFEST).stat().st_mtime) / _DAY_S
            if days is None or age_days >= days:
                yield run, f"{age_days:.0f} days old"


def old_kernels() -> Iterator[tuple[Path, str]]:
    """Find complete kernels of other checkouts or versions, which may need them again.

    Yields: a kernel's folder, and the reason why it can be removed.
    Raises: UsageError without a source of kernels, because then it is unknown which are in use.
    """
    flavours = [each for each in get_args(Flavour) if each not in FETCHED or fetched_source(each)]
    used = {kernel_folder(flavour) for flavour in flavours}
    used |= {smp_kernel.kernel_folder(checkers) for checkers in get_args(smp_kernel.Checkers)}
    kernels = cache() / "kernel"
    yield from ((path, "half removed") for path in sorted(kernels.glob(".removing-*")))
    for facts in sorted(kernels.glob("[0-9a-f]*/guest.json")):
        if facts.parent not in used:
            yield facts.parent, "kernel of another version, configuration or source"
    for history in sorted((cache() / "history").glob("*")):
        with lock_if_free(f"history-{history.name}") as free:
            if free:
                yield history, "checkout and build of `twoway bisect`"


def remove_captures(run: Path) -> None:
    """Remove a run's captures and samples; keep its documents and its report."""
    for name in (CAPTURES, SAMPLES):
        if (run / name).is_dir():
            remove_folder(run / name)


class Room:
    """The room for captures of a command's runs; what goes beyond it is removed.

    Args:
        keep: ALL captures, NONE, or None for those of the first runs that take ROOM_BYTES.
    """

    def __init__(self, keep: str | None) -> None:
        self._left: float = {ALL: math.inf, NONE: 0}.get(keep or "", ROOM_BYTES)
        self.removed = 0

    def take(self, run: Path, *, mine: bool) -> None:
        """Count a finished run's captures; remove them if there is no room, and the run is new."""
        size = sum(disk_bytes([run / name for name in (CAPTURES, SAMPLES)]))
        if mine and size > self._left:
            remove_captures(run)
            self.removed += 1
        else:
            self._left -= size


def remove(run: Path) -> None:
    """Remove a run or a kernel; meanwhile it does not look finished."""
    going = run.with_name(f"{_GOING}{run.name.removeprefix(_GOING)}")
    run.rename(going)
    remove_folder(going)
    latest = run.parent.parent / "latest"
    if latest.is_symlink() and not latest.exists():
        latest.unlink()
