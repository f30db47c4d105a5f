"""The kernel's source that a guest is built from."""

import hashlib
import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from twoway.errors import UsageError
from twoway.guest.seals import read_facts
from twoway.paths import PACKAGED, cache

# "guest" runs the experiments; "sanitized" has all of the kernel's checkers (KASAN, lockdep, ...);
# "newest" is Debian's newest kernel with the series in vm/patches/upstream.
Flavour = Literal["guest", "sanitized", "newest"]

OLDEST_KERNEL = (6, 12)
# Folders of a KERNEL_SRC tree in which a changed file causes another build.
_WATCHED_SOURCES = (
    "net/core",
    "net/ipv4",
    "net/sched",
    "net/packet",
    "kernel",
    "include/net",
    "include/linux",
    "arch/um",
    "arch/x86/um",
)


@dataclass(frozen=True)
class KernelSource:
    """A kernel to build: a distribution's tarball or an unpacked tree.

    Attributes:
        path: the tarball or tree; None where a built guest was deployed or packaged.
        identity: a text that differs between sources.
        builds: the folder that has the guests built from it.
    """

    path: Path | None
    identity: str
    builds: Path = field(default_factory=cache)


def kernel_source(flavour: Flavour = "guest") -> KernelSource:
    """Find the kernel's source.

    The source of the flavour "newest" is what `vm/fetch-newest-source` fetched. That of the others
    is $KERNEL_SRC if set, else that of a guest packaged or deployed here, else the tarball of the
    distribution's package, the oldest that is new enough.

    Raises: UsageError if there is no source, or only one that is too old.
    """
    if flavour == "newest":
        fetched = fetched_source()
        if fetched is None:
            raise UsageError("no newest kernel source", "`twoway build --newest` fetches it")
        return _tarball(fetched)
    chosen = os.environ.get("KERNEL_SRC")
    if chosen:
        return _tree(Path(chosen).resolve())
    for builds in (PACKAGED, cache()):
        deployed = builds / "deployed.json"
        if deployed.is_file():
            return KernelSource(None, read_facts(deployed).get("source", ""), builds)
    found = []
    for path in Path("/usr/src").glob("linux-source-*.tar.*"):
        match = re.match(r"linux-source-(\d+)\.(\d+)", path.name)
        if match and (int(match[1]), int(match[2])) >= OLDEST_KERNEL:
            found.append(((int(match[1]), int(match[2])), path))
    if not found:
        raise UsageError(
            "no kernel source of 6.12 or newer in /usr/src",
            "`make setup` installs linux-source-6.12; KERNEL_SRC= takes an unpacked tree",
        )
    return _tarball(min(found)[1])


def fetched_source() -> Path | None:
    """Find the newest kernel's source, as `vm/fetch-newest-source` leaves it."""
    return next((cache() / "source").glob("linux-source-*.tar.xz"), None)


def _tarball(path: Path) -> KernelSource:
    return KernelSource(path, f"{path.name} {path.stat().st_size}")


def _tree(path: Path) -> KernelSource:
    try:
        makefile = (path / "Makefile").read_text()
    except OSError as error:
        raise UsageError(f"KERNEL_SRC: {path}: not a kernel tree: {error.strerror}") from error
    fields = dict(re.findall(r"^(VERSION|PATCHLEVEL|SUBLEVEL) = (\d+)", makefile, re.MULTILINE))
    version = (int(fields.get("VERSION", 0)), int(fields.get("PATCHLEVEL", 0)))
    if version < OLDEST_KERNEL:
        raise UsageError(
            f"KERNEL_SRC: {path}: kernel {version[0]}.{version[1]}; 6.12 is the oldest supported"
        )
    return KernelSource(path, f"{path} {_tree_state(path)}")


def _tree_state(tree: Path) -> str:
    """Hash the names, sizes and change times in a tree's _WATCHED_SOURCES."""
    digest = hashlib.sha256((tree / "Makefile").read_bytes())
    for part in _WATCHED_SOURCES:
        for path in sorted((tree / part).rglob("*")):
            state = path.lstat()
            digest.update(f"{path} {state.st_size} {state.st_mtime_ns}\n".encode())
    return digest.hexdigest()
