"""Carrying out a run: folder, backend, manifest, final name.

A folder results/EXPERIMENT/RUN is complete. During the run, the folder's name starts with
`.running-`; if the run fails, the name ends in `.partial`. A run that does not fit on the disk is
removed at once; the run of a killed process is removed when its experiment runs again.
"""

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import BinaryIO

from twoway.backends.backend import Backend, Progress
from twoway.backends.registry import backend_for
from twoway.contract.files import open_lock
from twoway.contract.folders import remove_folder
from twoway.contract.network import START_NS
from twoway.contract.plan import PLAN
from twoway.contract.writing import chown_like_parent, make_folder, out_of_space
from twoway.description.point import Point
from twoway.errors import DiskFullError, RunError, UsageError, in_a_sentence
from twoway.manifest import CAPTURES, EXPERIMENT, MANIFEST, SAMPLES, read_manifest, without_captures
from twoway.messages import say
from twoway.plan.plan import build_plan
from twoway.plan.timing import stop_ns
from twoway.progress import RunClock
from twoway.runs.captures import pack
from twoway.runs.identity import identity
from twoway.runs.interventions import follow_interventions, original_of
from twoway.runs.manifest import LOCK, build_manifest, describe
from twoway.runs.program_search import refuse_missing_programs


def run_experiment(
    point: Point,
    backend: Backend,
    results: Path,
    on_progress: Callable[[Progress], None] = lambda _: None,
    *,
    took_s: float = 0,
    beside: Path | None = None,
    scratch: bool = False,
) -> Path:
    """Run an experiment and collect its artifacts.

    Args:
        point: the experiment.
        backend: the kernel and clock to run on.
        results: folder that holds one folder per experiment.
        on_progress: called about ten times a second, see Backend.run.
        took_s: wall time that the run has taken before this call, s.
        beside: the run without interventions: then later ones need not happen, if one does; by
            default it is found or made, and each must.
        scratch: the folder will be removed as soon as it is measured: captures stay uncompressed.

    Returns: the run's folder, complete except for the files that the analysis adds.
    Raises: DiskFullError, and the run's folder is removed; any other RunError, and the folder is
        kept as RUN.partial; UsageError if the experiment asks for a feature that the backend lacks;
        SpecError if this machine lacks a program that the guest would need.
    """
    backend = backend_for(point, backend)
    _refuse_real_time(point, backend)
    if backend.name == "uml":  # others may have another /usr
        refuse_missing_programs(point)
    original = beside or _original(point, backend, results)
    running, lock = new_folder(results / point.id)
    name = running.name.removeprefix(".running-")
    try:
        began = time.monotonic() - took_s
        plan = build_plan(point, in_kernel=backend.in_kernel)
        plan.write(running / PLAN)
        with _naming_commands(point):
            backend.run(running, on_progress)
        if original or not scratch:
            pack(running)
        strict = beside is None
        did = follow_interventions(point, running, original, strict=strict) if original else None
        with in_a_sentence(running, RunError):
            manifest = build_manifest(
                point,
                plan,
                backend,
                running,
                run=name,
                identity=identity(point, backend, plan),
                wall_s=time.monotonic() - began,
                interventions=did,
            )
        manifest.write(running / MANIFEST)
        (running / LOCK).unlink()
    except BaseException as error:
        told = _ended_early(running, error, scratch=scratch)
        if told is error:
            raise
        raise told from error
    finally:
        lock.close()
    finished = _name_folder(running, name)
    _point_latest(results, finished)
    chown_like_parent(finished)
    chown_like_parent(results / "latest")
    return finished


def _original(point: Point, backend: Backend, results: Path) -> Path | None:
    """Find or make the run that a run with interventions is compared with."""
    if not point.experiment.interventions:
        return None
    original = original_of(point)
    return kept_run(original, backend, results) or run_experiment(original, backend, results)


def _refuse_real_time(point: Point, backend: Backend) -> None:
    """Raise UsageError if an experiment needs virtual time."""
    wanted = {
        "capture": point.experiment.capture,
        "observe.sampler": point.experiment.observe.sampler,
    }
    for field, value in wanted.items():
        if value == "kernel" and not backend.in_kernel:
            raise UsageError(
                f"{point.id}: {field}: kernel needs virtual time, which {backend.name} "
                "does not have",
                "without the field each backend chooses for itself",
            )
    if point.experiment.seed != 1 and not backend.in_kernel:
        raise UsageError(f"{point.id}: seed: {backend.name} has random numbers that no seed sets")


@contextmanager
def _naming_commands(point: Point) -> Iterator[None]:
    """Name the file, and the field, of a command that failed as the guest set up its network."""
    try:
        yield
    except RunError as error:
        for line in point.experiment.setup_lines:
            shell = f"in the guest: {line.node}: {' '.join(line.command.run)}: "
            if (said := str(error).removeprefix(shell)) != str(error):
                where = f"{point.id}: {line.place}: {line.text}"
                raise RunError(f"{where}: {said}", error.hint) from error
        raise


def run_watched(point: Point, backend: Backend, results: Path) -> Path:
    """Run an experiment as `run_experiment` does, with its progress on stderr."""
    with RunClock(point.id, START_NS, stop_ns(point)) as clock:
        return run_experiment(
            point,
            backend,
            results,
            lambda now: clock.show(now.time_ns, now.acked_bytes, now.queued_packets),
        )


@contextmanager
def lock_point(point: Point, results: Path) -> Iterator[None]:
    """Hold a point's lock: no other process looks for its run, or makes one.

    Simultaneous sweeps of the same points wait for each other here, so that each point runs once.
    """
    folder = results / point.id
    make_folder(folder)
    lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with suppress(OSError):  # NFS cannot lock folders: there a point may run twice
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                _say_that_another_runs(results)
                fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


@cache
def _say_that_another_runs(results: Path) -> None:
    """Say once that points wait for another command."""
    say(f"another command runs points into {results}: waiting for it, its runs are kept")


def kept_run(
    point: Point,
    backend: Backend,
    results: Path,
    *,
    without_if: Callable[[Path], bool] = lambda _: False,
) -> Path | None:
    """Find the newest finished run with the same identity, if any.

    Runs whose manifest cannot be read, or whose files have changed, are reported and not kept.
    `without_if` tells whether a run without captures and samples suffices. Such a run never
    suffices if its description has changed since, or if only its captures were removed.

    If texts, statements or warm-up of the experiment have changed since the run, they are written
    to experiment.json in the run's folder; its other files stay unchanged.
    """
    wanted = identity(point, backend_for(point, backend))
    for folder in sorted((results / point.id).glob("[0-9]*"), reverse=True):
        try:
            manifest = read_manifest(folder)
        except ValueError as error:
            if (folder / MANIFEST).exists():  # broken or of another version; not partial
                say(f"not kept: {error}", wrong=True)
            continue
        if manifest.identity != wanted:
            continue
        now = describe(point)
        left_out = []
        if manifest.captures and without_captures(folder):
            removed = not (folder / SAMPLES).exists() and manifest.describes(now)
            left_out = [] if removed and without_if(folder) else [CAPTURES]
        if damaged := left_out + manifest.list_damaged(folder):
            names = ", ".join(damaged)
            what = f"not kept: {folder}: missing or changed since the run: {names}"
            say(what, wrong=True)
            continue
        if not manifest.describes(now):
            now.write(folder / EXPERIMENT)
        return folder
    return None


def new_folder(parent: Path) -> tuple[Path, BinaryIO]:
    """Make a run's folder, locked while the run's process lives; remove those of killed ones.

    No other user may open the files that a guest is writing.
    """
    make_folder(parent)
    for left in parent.glob(".running-*"):
        _remove_if_dead(left)
    while True:
        stamp = datetime.now(tz=UTC).strftime("%Y%m%d-%H%M%S-%f")
        folder = parent / f".new-{stamp}"  # renamed to .running-* once locked
        try:
            folder.mkdir(mode=0o700)
        except FileExistsError:
            continue
        lock = open_lock(folder, LOCK)
        fcntl.flock(lock, fcntl.LOCK_EX)
        return folder.rename(parent / f".running-{stamp}"), lock


def _name_folder(running: Path, name: str) -> Path:
    """Give a run's folder its name, and its parent's rights."""
    opened = os.open(running, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        os.fchmod(opened, running.parent.stat().st_mode & 0o777)
    finally:
        os.close(opened)
    return running.rename(running.with_name(name))


def _remove_if_dead(left: Path) -> None:
    try:
        with open_lock(left.parent, f"{left.name}/{LOCK}", there=True) as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # the run lives, has just ended, belongs to root, or is no run
        return
    with suppress(OSError):
        remove_folder(left)


def _ended_early(running: Path, error: BaseException, *, scratch: bool = False) -> BaseException:
    """Keep a failed run as .partial; remove it if the disk is full or nothing was run.

    Returns: the error to raise.
    """
    if isinstance(error, OSError) and out_of_space(error):
        error = DiskFullError(f"{running.parent}: {error}")
    if isinstance(error, DiskFullError | UsageError):
        with suppress(OSError):
            remove_folder(running)
        return error
    (running / LOCK).unlink(missing_ok=True)
    kept = _name_folder(running, running.name.removeprefix(".running-") + ".partial")
    chown_like_parent(kept)
    place = "`twoway run` keeps the folder" if scratch else f"kept in {kept}"
    if isinstance(error, OSError):
        return RunError(f"{error.strerror}: {error.filename}", place)
    if isinstance(error, RunError):
        return RunError(str(error), f"{error.hint}; {place}".lstrip("; "))
    return error


def _point_latest(results: Path, finished: Path) -> None:
    link = results / f".latest-{os.getpid()}"
    link.unlink(missing_ok=True)
    link.symlink_to(finished.relative_to(results))
    link.replace(results / "latest")
