"""A run's life: a folder of its own, the guest, the manifest, the analysis, the final name.

A folder under results/<experiment>/ that carries a run's plain name is complete. While it runs
its name starts with `.running-`; if it fails it ends in `.partial`.
"""

import json
import os
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from twoway.backend import Backend, Progress
from twoway.captures import pack
from twoway.case import Case
from twoway.errors import RunError
from twoway.files import write_json
from twoway.identity import identity
from twoway.manifest import build_manifest, describe
from twoway.plan import START_NS, build_plan, stop_ns
from twoway.progress import RunClock


def run_case(
    case: Case,
    backend: Backend,
    results: Path,
    on_progress: Callable[[Progress], None] = lambda _: None,
) -> Path:
    """Run an experiment and collect its artifacts.

    Args:
        case: the experiment.
        backend: where it runs.
        results: folder that holds one folder per experiment.
        on_progress: see Backend.run.

    Returns: the run's folder, complete but for what the analysis adds.
    Raises: RunError, with the partial run kept aside.
    """
    running = _new_folder(results / case.id)
    name = running.name.removeprefix(".running-")
    try:
        began = time.monotonic()
        plan = build_plan(case)
        write_json(running / "plan.json", plan)
        backend.run(running, on_progress)
        pack(running)
        manifest = build_manifest(case, plan, backend, running)
        manifest["run"] = name
        manifest["identity"] = identity(case, backend)
        manifest["timing"] = _timing(case, began)
        write_json(running / "manifest.json", manifest)
    except OSError as error:
        kept = _set_aside(running, name)
        raise RunError(f"{error.strerror}: {error.filename}", f"kept in {kept}") from error
    except BaseException as error:
        kept = _set_aside(running, name)
        if isinstance(error, RunError):
            raise RunError(str(error), f"{error.hint}; kept in {kept}".lstrip("; ")) from error
        raise
    finished = running.with_name(name)
    running.rename(finished)
    _point_latest(results, finished)
    return finished


def run_watched(case: Case, backend: Backend, results: Path) -> Path:
    """As `run_case`, with the run's clock on standard error."""
    with RunClock(case.id, START_NS, stop_ns(case)) as clock:
        return run_case(
            case,
            backend,
            results,
            lambda now: clock.show(now.time_ns, now.acked_bytes, now.queued_packets),
        )


def kept_run(case: Case, backend: Backend, results: Path) -> Path | None:
    """The newest finished run with the same identity, described as its experiment is now.

    Texts, expectations and the warm-up may have changed since: its manifest then says so.
    """
    wanted = identity(case, backend)
    for folder in sorted((results / case.id).glob("[0-9]*"), reverse=True):
        try:
            manifest = json.loads((folder / "manifest.json").read_text())
        except OSError:  # a partial run
            continue
        if manifest.get("identity") != wanted:
            continue
        now = describe(case)
        if any(manifest[key] != value for key, value in now.items()):
            write_json(folder / "manifest.json", manifest | now)
        return folder
    return None


def _new_folder(parent: Path) -> Path:
    parent.mkdir(parents=True, exist_ok=True)
    while True:
        stamp = datetime.now(tz=UTC).strftime("%Y%m%d-%H%M%S-%f")
        folder = parent / f".running-{stamp}"
        try:
            folder.mkdir()
        except FileExistsError:
            continue
        return folder


def _set_aside(running: Path, name: str) -> Path:
    aside = running.with_name(f"{name}.partial")
    running.rename(aside)
    return aside


def _timing(case: Case, began: float) -> dict[str, Any]:
    wall_s = time.monotonic() - began
    return {
        "wall_s": round(wall_s, 3),
        "simulated_s": case.experiment.duration_s,
        "speed": round(case.experiment.duration_s / wall_s, 2),
    }


def _point_latest(results: Path, finished: Path) -> None:
    link = results / f".latest-{os.getpid()}"
    link.unlink(missing_ok=True)
    link.symlink_to(finished.relative_to(results))
    link.replace(results / "latest")
