"""Runs of tests, kept in the user's cache by their identity, which determines their bytes.

A test measures a kept run anew. Two things that decide a run's bytes are no part of its identity:
the code that collects a run on the host, and the packages that an experiment's programs come from.
When one of them changes, the runs are made again.
"""

import fcntl
import hashlib
import json
import os
import re
import shutil
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from support.guest.in_guest import run_in_guest
from twoway.backends import backend, guest_files, sandbox, uml
from twoway.backends.registry import backend_for
from twoway.contract.files import sha256
from twoway.contract.folders import disk_bytes
from twoway.contract.metrics import METRICS, Metrics
from twoway.contract.model import Document
from twoway.contract.plan import PLAN, Plan
from twoway.description.point import Point
from twoway.errors import RunError
from twoway.guest.cache import Guest, built_guest
from twoway.manifest import EXPERIMENT, MANIFEST, Described, Manifest
from twoway.paths import KERNEL_MODULES, ROOT, VM
from twoway.paths import cache as user_cache
from twoway.runs import captures, manifest, run
from twoway.runs.identity import identity
from twoway.runs.points import load_point

KEPT = user_cache() / "test-runs"
# Those that were not used for the longest time go first.
MOST_BYTES = 3 << 30
_INSTALLED = Path("/var/lib/dpkg/status")
# The folders of programs that run in a guest, each with others that they read.
_PROGRAMS = {
    KERNEL_MODULES / "tests": (KERNEL_MODULES / "include", KERNEL_MODULES / "tc"),
    ROOT / "tests/support/guest": (),
}
# The kinds of documents of a run's folder.
_DOCUMENTS: dict[str, type[Document]] = {
    PLAN: Plan,
    MANIFEST: Manifest,
    EXPERIMENT: Described,
    METRICS: Metrics,
}
_COLLECTORS = (backend, guest_files, sandbox, uml, captures, manifest, run)


def finished_runs(below: Path) -> set[Path]:
    """Return the folders of finished runs, at any depth."""
    found = set()
    for folder, inside, files in os.walk(below):
        if MANIFEST in files and Path(folder).name[0].isdigit():
            found.add(Path(folder))
            inside.clear()  # rglob would look into each run, which takes three times as long
    return found


def complaints(run: Path) -> Iterator[str]:
    """List how a run's documents differ from the output of their models."""
    for name, model in _DOCUMENTS.items():
        path = run / name
        if not path.exists():
            if name in (PLAN, MANIFEST):
                yield f"{path}: missing"
            continue
        try:
            document = model.read(path)
        except ValueError as error:
            yield str(error)
            continue
        if json.loads(document.model_dump_json()) != json.loads(path.read_bytes()):
            yield f"{path}: not as {model.__name__} writes it"


@cache
def packages(installed: Path = _INSTALLED) -> bytes:
    """Hash the packages that a guest's programs come from, with all that these depend on.

    They are Debian's essential ones, and those that `vm/install-packages` names for hosts and
    tests. Others, such as QEMU, may come and go.
    """
    found, provided = {}, defaultdict(list)
    for text in installed.read_text("utf-8").split("\n\n"):
        fields = dict(re.findall(r"^([\w-]+): (.*)$", text, re.MULTILINE))
        if fields.get("Status", "").endswith(" installed"):
            found[fields["Package"]] = fields
            for name in re.findall(r"[\w.+-]{2,}(?= \(|,|$)", fields.get("Provides", "")):
                provided[name].append(fields["Package"])
    lists = re.findall(
        r"^(?:host|test)_packages=\((.*?)^\)",
        (VM / "install-packages").read_text("utf-8"),
        re.MULTILINE | re.DOTALL,
    )
    waiting = re.sub("#.*", "", "".join(lists)).split()
    waiting += [name for name, fields in found.items() if fields.get("Essential") == "yes"]
    decisive: dict[str, str] = {}
    while waiting:
        name = waiting.pop()
        if name not in found:
            waiting += provided[name]
        elif name not in decisive:
            decisive[name] = found[name]["Version"]
            needs = f"{found[name].get('Pre-Depends', '')},{found[name].get('Depends', '')}"
            waiting += re.findall(r"(?:^|[,|]) *([\w.+-]+)", needs)
    return hashlib.sha256(json.dumps(sorted(decisive.items())).encode()).digest()


@cache
def _collectors() -> bytes:
    """Hash the code that writes a run's folder."""
    sources = (Path(str(module.__file__)).read_bytes() for module in _COLLECTORS)
    return hashlib.sha256(b"".join(sources)).digest()


@contextmanager
def _place(*parts: bytes) -> Iterator[Path]:
    """Lock the folder whose name follows from all that decides what is in it, used now."""
    key = hashlib.sha256(b"".join((_collectors(), *parts))).hexdigest()
    folder = KEPT / key[:16]
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        os.utime(folder)
        yield folder


@contextmanager
def _runs(of: Point, on: backend.Backend, beside: Path | None = None) -> Iterator[Path]:
    """Lock the folder of the runs with a point's identity; those beside another are apart."""
    programs = [packages()] if of.experiment.programs else []
    with _place(identity(of, on).encode(), *programs, b"beside" * bool(beside)) as runs:
        yield runs


def _found(of: Point, on: backend.Backend, runs: Path) -> Path | None:
    """Find a run; one whose documents lack new fields is none."""
    folder = run.kept_run(of, on, runs)
    return folder if folder and not [*complaints(folder)] else None


@contextmanager
def kept(name: str) -> Iterator[Path]:
    """Find an experiment's run in the user's cache, or make it there.

    Yields: the run's folder, locked; tests must not change it.
    """
    of = load_point(name)
    on = backend_for(of, uml.Uml(built_guest()))
    with _runs(of, on) as runs:
        yield _found(of, on, runs) or run.run_experiment(of, on, runs)


def carry_out(
    experiment: str | Path | Point,
    results: Path,
    on: backend.Backend | None = None,
    beside: Path | None = None,
) -> Path:
    """Run an experiment into a results folder, or copy its kept run; return the run's folder.

    A run that fails is kept as its error. A test of the runner itself calls `run_experiment` or
    the command.

    Args:
        experiment: its name or file, or a point.
        results: folder of the test.
        on: the kernel to run on; None is the guest that `make setup` built.
        beside: the run without interventions, as `run_experiment` takes it.

    Raises: RunError if the run fails, with the same words as at first.
    """
    of = experiment if isinstance(experiment, Point) else load_point(str(experiment))
    on = backend_for(of, on or uml.Uml(built_guest()))
    with _runs(of, on, beside) as runs:
        if found := _found(of, on, runs):
            folder = shutil.copytree(found, results / of.id / found.name)
            latest = results / "latest"
            latest.unlink(missing_ok=True)
            latest.symlink_to(folder.relative_to(results))
        elif (failed := runs / "failed.json").exists():
            raise RunError(*json.loads(failed.read_text()))
        else:
            try:
                folder = run.run_experiment(of, on, results, beside=beside)
            except RunError as error:
                failed.write_text(json.dumps([str(error), error.hint]))
                raise
            new = shutil.copytree(folder, runs / of.id / f".{folder.name}")
            new.rename(runs / of.id / folder.name)
    return folder


def kept_output(print_it: Callable[[], str], *decisive: bytes) -> str:
    """Return what a program prints, from the cache if all that decides it is as before."""
    with _place(*decisive) as place:
        output = place / "output.txt"
        if not output.exists():
            output.with_suffix(".new").write_text(print_it())
            output.with_suffix(".new").rename(output)
        return output.read_text()


def kept_in_guest(
    guest: Guest, folder: Path, program: Path, *arguments: str, modules: str = "*"
) -> str:
    """Run a program in a guest as `run_in_guest` does, or copy all that it left there before.

    The program may read files of one folder of _PROGRAMS, with those beside it, and may load the
    modules whose names fit a pattern: the guest has no others.
    """
    beside = next(tree for tree in _PROGRAMS if program.is_relative_to(tree))
    sources = (file for tree in (beside, *_PROGRAMS[beside]) for file in sorted(tree.rglob("*.*")))
    hashes = [sha256(file).encode() for file in sources if file.suffix not in {".pyc", ".md"}]
    loaded = sorted(module.name for module in guest.programs.glob(f"{modules}.ko"))
    decisive = [uml.Uml(guest).identify(loaded), str(program.relative_to(ROOT)), arguments, modules]
    with (
        _place(json.dumps(decisive).encode(), packages(), *hashes) as place,
        TemporaryDirectory() as scratch,
    ):
        if (place / "run").exists():
            shutil.copytree(place / "run", folder, dirs_exist_ok=True)
        else:
            own = shutil.copytree(guest.programs, Path(scratch, "bin"))
            for module in {*own.glob("*.ko")} - {*own.glob(f"{modules}.ko")}:
                module.unlink()
            Path(scratch).chmod(0o755)  # the sandbox is another user's
            run_in_guest(replace(guest, programs=own), folder, program, *arguments)
            new = shutil.copytree(folder, place / "new", symlinks=True, dirs_exist_ok=True)
            new.rename(place / "run")
    return (folder / "log/console.txt").read_text(errors="replace")


def remove_old_runs() -> None:
    """Remove the runs that were not used for the longest time, above MOST_BYTES in all."""
    folders = [path for path in KEPT.glob("*") if path.is_dir() and not path.is_symlink()]
    folders.sort(key=lambda path: path.stat().st_mtime, reverse=True)
    total = 0
    for folder, size in zip(folders, disk_bytes(folders), strict=True):
        total += size
        if total > MOST_BYTES:
            shutil.rmtree(folder, ignore_errors=True)  # another session may do it, too
