"""What a lab host is given: the checkout, the Python environment and the guest, an archive each.

Hosts need no compiler, no package index and no way out of the lab for it, and every host has the
same bytes as the machine that deploys. An archive is named for a hash of what is in it, made once
and kept in the cache; a host that has unpacked one of that name need not be sent it again.
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

from twoway.contract.writing import sha256, write_json
from twoway.errors import TwowayError
from twoway.guest.build import Guest
from twoway.paths import KERNEL_MODULES, ROOT, cache
from twoway.runs.manifest import REVISION_FILE, git_revision

# What of the checkout a host needs; capture-analysis is installed in the environment.
_CHECKOUT = ("experiments", "topologies", "tc-profiles", "kernel-modules", "vm", "twoway")
_LOCKED = ("pyproject.toml", "uv.lock", "capture-analysis")
_COMMAND = """#!/bin/sh
exec "$(dirname "$0")/python" -P -m twoway.cli "$@"
"""
# From the environment's site-packages to the checkout beside the environment.
_BESIDE = "../../../../checkout\n"


@dataclass(frozen=True)
class Bundle:
    """One archive.

    Attributes:
        name: "checkout", "environment" or "guest".
        key: of its content.
        path: the archive.
        unpacked_bytes: what it takes on a host.
    """

    name: str
    key: str
    path: Path
    unpacked_bytes: int

    def document(self) -> dict[str, Any]:
        """For the playbooks."""
        return {
            "name": self.name,
            "key": self.key,
            "archive": str(self.path),
            "unpacked_bytes": self.unpacked_bytes,
        }


def make_bundles(guest: Guest) -> list[Bundle]:
    """Make what is not in the cache yet.

    Raises: TwowayError if a program fails, with what it said.
    """
    checkout, locked = _tracked(_CHECKOUT), _tracked(_LOCKED)
    python = ".".join(platform.python_version_tuple()[:2])
    return [
        _bundle("checkout", _key(checkout, git_revision()), lambda to: _copy_files(checkout, to)),
        _bundle("environment", _key(locked, python, _COMMAND, _BESIDE), _make_environment),
        _bundle("guest", guest.key, lambda to: _copy_guest(guest, to)),
    ]


def _tracked(parts: Iterable[str]) -> list[Path]:
    """Files of the checkout, new ones included; what git ignores is not."""
    argv = ["git", "-C", str(ROOT), "ls-files", "-z", "-co", "--exclude-standard", "--", *parts]
    names = _said(argv).split("\0")
    # Neither corpus nor tests, which are most of the files.
    wanted = {n for n in names if n and not {"fuzz", "tests"} & set(Path(n).parts)}
    return [ROOT / name for name in sorted(wanted) if (ROOT / name).is_file()]


def _key(files: Iterable[Path], *texts: str) -> str:
    digest = hashlib.sha256("\0".join(texts).encode())
    for path in files:
        rights = path.stat().st_mode & 0o111
        digest.update(f"\0{path.relative_to(ROOT)}\0{rights}\0{sha256(path)}".encode())
    return digest.hexdigest()[:16]


def _bundle(name: str, key: str, fill: Callable[[Path], None]) -> Bundle:
    """Fill a folder, archive it aside, rename."""
    folder = cache() / "bundles"
    folder.mkdir(parents=True, exist_ok=True)
    archive = folder / f"{name}-{key}.tar.zst"
    if not archive.is_file():
        with tempfile.TemporaryDirectory(prefix=f".{name}-", dir=folder) as scratch:
            content, packed = Path(scratch) / name, Path(scratch) / archive.name
            content.mkdir()
            fill(content)
            (content / ".bundle").write_text(f"{key}\n")
            size = int(_said(["du", "-s", "-B1", str(content)]).split()[0])
            write_json(archive.with_suffix(".json"), {"unpacked_bytes": size})
            own = ["--owner=0", "--group=0", "--numeric-owner", "--mode=u+rwX,go+rX,go-w"]
            _said(["tar", "-C", str(content), *own, "-I", "zstd -3 -T0", "-cf", str(packed), "."])
            packed.rename(archive)
    known = json.loads(archive.with_suffix(".json").read_text())
    return Bundle(name, key, archive, known["unpacked_bytes"])


def _copy_files(files: Sequence[Path], to: Path) -> None:
    for path in files:
        target = to / path.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, target)
    (to / REVISION_FILE).write_text(f"{git_revision()}\n")
    # By their sources, as modules in the cache: a commit that leaves them alone builds none anew.
    modules = _key(path for path in files if KERNEL_MODULES in path.parents)
    (to / "kernel-modules/REVISION").write_text(f"{modules}\n")
    # The user that experiments run as may not write it there, and root would leave it behind.
    compileall.compile_dir(to, quiet=1)


def _make_environment(to: Path) -> None:
    """The locked environment, without what tests and linters need, movable."""
    uv = _uv()
    _said(
        [
            uv,
            "venv",
            "--quiet",
            "--allow-existing",
            "--relocatable",
            "--python",
            "/usr/bin/python3",
            str(to),
        ]
    )
    sync = "sync --quiet --locked --no-default-groups --no-editable --no-install-project"
    _said(
        [uv, *sync.split(), "--compile-bytecode", "--project", str(ROOT)],
        {"UV_PROJECT_ENVIRONMENT": str(to)},
    )
    (packages,) = to.glob("lib/python3.*/site-packages")
    (packages / "twoway.pth").write_text(_BESIDE)
    command = to / "bin/twoway"
    command.write_text(_COMMAND)
    command.chmod(0o755)


def _uv() -> str:
    """The uv that made our own environment."""
    found = sorted((cache()).glob("uv-*/bin/uv"), key=lambda path: path.stat().st_mtime)
    if not found:
        raise TwowayError("uv is not there", "`make env` installs it")
    return str(found[-1])


def _copy_guest(guest: Guest, to: Path) -> None:
    """As in the cache, less what only building needs; deployed.json says what it is built from."""
    kernel = to / "kernel" / guest.kernel.parent.parent.name
    (kernel / "build").mkdir(parents=True)
    shutil.copy2(guest.kernel, kernel / "build")
    shutil.copy2(guest.kernel.parent.parent / "guest.json", kernel)
    shutil.copytree(guest.programs, to / "programs" / guest.programs.name)
    shutil.copy2(guest.kernel.parent.parent / "guest.json", to / "deployed.json")


def _said(argv: list[str], settings: dict[str, str] | None = None) -> str:
    done = subprocess.run(
        argv, capture_output=True, text=True, check=False, env={**os.environ, **(settings or {})}
    )
    if done.returncode != 0:
        raise TwowayError(f"{' '.join(argv[:4])} ...: failed\n{done.stderr.strip()}")
    return done.stdout
