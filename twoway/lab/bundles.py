"""Archives for lab hosts: checkout, Python environment and guest.

A host needs no compiler, no package index and no access beyond the lab, and every host has the same
bytes as the deploying machine. An archive is named by a hash of its content, made once and kept in
the cache; a host that has unpacked it does not receive it again.
"""

import compileall
import hashlib
import json
import os
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from twoway.contract.files import sha256
from twoway.contract.writing import write_json
from twoway.errors import TwowayError
from twoway.guest.cache import Guest, copy_guest
from twoway.paths import KERNEL_MODULES, ROOT, cache
from twoway.runs.manifest import REVISION_FILE, git_revision

# The parts of the checkout that a host needs; capture-analysis is installed in the environment.
_CHECKOUT = ("experiments", "topologies", "tc-profiles", "kernel-modules", "vm", "twoway")
_LOCKED = ("pyproject.toml", "uv.lock", "capture-analysis")
_COMMAND = """#!/bin/sh
exec "$(dirname "$0")/python" -P -m twoway.cli "$@"
"""
# Path from the environment's site-packages to the checkout, which is beside the environment.
_CHECKOUT_PATH = "../../../../checkout\n"


@dataclass(frozen=True)
class Bundle:
    """An archive for lab hosts.

    Attributes:
        name: "checkout", "environment" or "guest".
        key: hash of the content.
        path: the archive.
        unpacked_bytes: its size on a host's disk.
    """

    name: str
    key: str
    path: Path
    unpacked_bytes: int

    def document(self) -> dict[str, Any]:
        """Describe the archive for the playbooks, as a JSON object."""
        return {
            "name": self.name,
            "key": self.key,
            "archive": str(self.path),
            "unpacked_bytes": self.unpacked_bytes,
        }


def make_bundles(guest: Guest) -> list[Bundle]:
    """Make the archives that are not in the cache yet, and return all.

    Raises: TwowayError with the output of a program that failed.
    """
    checkout, locked = _tracked(_CHECKOUT), _tracked(_LOCKED)
    python = ".".join(platform.python_version_tuple()[:2])
    return [
        _bundle("checkout", _key(checkout, git_revision()), lambda to: _copy_files(checkout, to)),
        _bundle("environment", _key(locked, python, _COMMAND, _CHECKOUT_PATH), _make_environment),
        _bundle("guest", guest.key, lambda to: copy_guest(guest, to)),
    ]


def _tracked(parts: Iterable[str]) -> list[Path]:
    """List the checkout's files, with new ones, without those that git ignores."""
    argv = ["git", "-C", str(ROOT), "ls-files", "-z", "-co", "--exclude-standard", "--", *parts]
    names = _output_of(argv).split("\0")
    # Without the fuzzing corpus and the tests, which are most of the files.
    wanted = {n for n in names if n and not {"fuzz", "tests"} & set(Path(n).parts)}
    return [ROOT / name for name in sorted(wanted) if (ROOT / name).is_file()]


def _key(files: Iterable[Path], *texts: str) -> str:
    digest = hashlib.sha256("\0".join(texts).encode())
    for path in files:
        rights = path.stat().st_mode & 0o111
        digest.update(f"\0{path.relative_to(ROOT)}\0{rights}\0{sha256(path)}".encode())
    return digest.hexdigest()[:16]


def _bundle(name: str, key: str, fill: Callable[[Path], None]) -> Bundle:
    """Archive the folder that `fill` fills, unless it is in the cache."""
    folder = cache() / "bundles"
    folder.mkdir(parents=True, exist_ok=True)
    archive = folder / f"{name}-{key}.tar.zst"
    if not archive.is_file():
        with tempfile.TemporaryDirectory(prefix=f".{name}-", dir=folder) as scratch:
            content, packed = Path(scratch) / name, Path(scratch) / archive.name
            content.mkdir()
            fill(content)
            (content / ".bundle").write_text(f"{key}\n")
            size = int(_output_of(["du", "-s", "-B1", str(content)]).split()[0])
            write_json(archive.with_suffix(".json"), {"unpacked_bytes": size})
            own = ["--owner=0", "--group=0", "--numeric-owner", "--mode=u+rwX,go+rX,go-w"]
            _output_of(
                ["tar", "-C", str(content), *own, "-I", "zstd -3 -T0", "-cf", str(packed), "."]
            )
            packed.rename(archive)
    known = json.loads(archive.with_suffix(".json").read_text())
    return Bundle(name, key, archive, known["unpacked_bytes"])


def _copy_files(files: Sequence[Path], to: Path) -> None:
    for path in files:
        target = to / path.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, target)
    (to / REVISION_FILE).write_text(f"{git_revision()}\n")
    # A hash of the modules' sources, not the commit: most commits do not change them, and then
    # nothing is built.
    modules = _key(path for path in files if KERNEL_MODULES in path.parents)
    (to / "kernel-modules/REVISION").write_text(f"{modules}\n")
    # Compile now: the user who runs experiments may not write bytecode there, and bytecode that
    # root writes later would stay.
    compileall.compile_dir(to, quiet=1)


def _make_environment(to: Path) -> None:
    """Make the locked environment, relocatable, without the packages of tests and linters."""
    uv = _uv()
    venv = "venv --quiet --allow-existing --relocatable --python /usr/bin/python3"
    _output_of([uv, *venv.split(), str(to)])
    # Files linked to uv's cache change with another checkout's environment, and tar refuses these.
    sync = "sync --quiet --locked --no-default-groups --no-editable --no-install-project"
    sync += " --link-mode copy"
    # Without this refresh uv takes a wheel that it built before the package's Python changed.
    fresh = "--compile-bytecode --refresh-package capture-analysis"
    _output_of(
        [uv, *sync.split(), *fresh.split(), "--project", str(ROOT)],
        {"UV_PROJECT_ENVIRONMENT": str(to)},
    )
    (packages,) = to.glob("lib/python3.*/site-packages")
    (packages / "twoway.pth").write_text(_CHECKOUT_PATH)
    command = to / "bin/twoway"
    command.write_text(_COMMAND)
    command.chmod(0o755)


def _uv() -> str:
    """Find the uv that `make env` installed."""
    found = sorted((cache()).glob("uv-*/bin/uv"), key=lambda path: path.stat().st_mtime)
    if not found:
        raise TwowayError("uv is not there", "`make env` installs it")
    return str(found[-1])


def _output_of(argv: list[str], settings: dict[str, str] | None = None) -> str:
    done = subprocess.run(
        argv, capture_output=True, text=True, check=False, env={**os.environ, **(settings or {})}
    )
    if done.returncode != 0:
        raise TwowayError(f"{' '.join(argv[:4])} ...: failed\n{done.stderr.strip()}")
    return done.stdout
