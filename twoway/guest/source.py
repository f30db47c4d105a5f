"""The source of a guest's kernel."""

import hashlib
import os
import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from twoway.errors import UsageError
from twoway.guest.seals import content_hash, read_facts
from twoway.paths import PACKAGED, cache

# "guest" runs the experiments; "sanitized" has all of the kernel's checkers (KASAN, lockdep, ...);
# "newest" is Debian's newest kernel with the series in vm/patches/upstream, "newest-tun" that with
# TUN; "wide" has more of Linux's network, for what an experiment sets up by commands; "6.1" is
# Debian 12's first kernel.
Flavour = Literal["guest", "sanitized", "newest", "newest-tun", "wide", "6.1"]


@dataclass(frozen=True)
class Patched:
    """A kernel with a patch of the user's on top.

    Attributes:
        base: the kernel without it.
        patch: a file of messages with diffs, or of a diff alone.
    """

    base: "Choice"
    patch: Path

    def __str__(self) -> str:
        """Return the name by which `--kernel` takes it."""
        return f"{self.base}+{self.patch}"


# The source of a guest: a flavour, an unpacked tree, or either with a patch.
Choice = Flavour | Path | Patched

# Flavours by the names of kernels; without a name it is the first.
NAMED: dict[str | None, Flavour] = {
    None: "guest",
    "guest": "guest",
    "wide": "wide",
    "newest": "newest",
    "newest-tun": "newest-tun",
    "6.1": "6.1",
}
# Flavours with a source that `vm/fetch-source` fetches: its argument, if it needs one.
FETCHED: dict[Flavour, list[str]] = {"newest": [], "newest-tun": [], "6.1": ["6.1"]}

_OLDEST_KERNEL = (6, 1)
# From this version on a tree is configured and patched as "guest", the first whose patches all fit.
_FIRST_GUEST = (6, 12)
# From this version on a tree is configured and patched as "newest".
_FIRST_NEWEST = (7, 3)
# Folders of an unpacked tree; a changed file in them causes another build.
_WATCHED_SOURCES = (
    *("arch/um", "arch/x86/um", "drivers/net", "fs/hostfs", "include", "kernel", "lib", "mm"),
    "net",
)


@dataclass(frozen=True)
class KernelSource:
    """A kernel to build: a distribution's tarball or an unpacked tree.

    Attributes:
        path: the tarball or tree; None if a built guest was deployed or packaged.
        identity: a text that differs between sources.
        builds: the folder of the guests built from it.
    """

    path: Path | None
    identity: str
    builds: Path = field(default_factory=cache)


def kernel_named(name: str | None) -> Choice:
    """Read the name of a kernel, given by `--kernel` or an experiment's `kernel`.

    Raises: UsageError if there is no such kernel.
    """
    if name in NAMED:
        return NAMED[name]
    path = Path(str(name)).expanduser()
    if path.is_dir():
        return path.resolve()
    for plus in re.finditer(r"(?<=.)\+", str(name)):
        patch = Path(plus.string[plus.end() :]).expanduser()
        if patch.is_file():
            return Patched(kernel_named(plus.string[: plus.start()]), patch.resolve())
    raise UsageError(
        f"kernel: must be {', '.join(filter(None, NAMED))} or the folder of an unpacked source, "
        f"got {name:.80}",
        "KERNEL+FILE is one of these with a patch",
    )


def flavour_of(choice: Choice) -> Flavour:
    """Return the flavour by which a guest is configured and patched.

    Raises: UsageError if a folder is no kernel tree, or too old.
    """
    if isinstance(choice, Patched):
        return flavour_of(choice.base)
    if not isinstance(choice, Path):
        return choice
    version = version_of(choice)
    if version >= _FIRST_NEWEST:
        return "newest"
    return "guest" if version >= _FIRST_GUEST else "6.1"


def kernel_source(choice: Choice = "guest") -> KernelSource:
    """Find the kernel's source.

    For the flavours in FETCHED that is the source which `vm/fetch-source` fetched. For the
    others it is $KERNEL_SRC if set, else the source of a guest packaged or deployed here, else the
    tarball of the distribution's package, the oldest that is new enough, else Debian's 6.12.

    Raises: UsageError if there is no source, or only one that is too old.
    """
    if isinstance(choice, Patched):
        base = kernel_source(choice.base)
        identity = f"{base.identity} + {content_hash(choice.patch.read_bytes())}"
        return replace(base, identity=identity)
    if isinstance(choice, Path):
        return _tree(choice)
    if choice in FETCHED:
        fetched = fetched_source(choice)
        if fetched is None:
            raise UsageError(
                f"no {choice} kernel source", f"`twoway build --kernel {choice}` fetches it"
            )
        return _tarball(fetched)
    return _distribution_source()


def _distribution_source() -> KernelSource:
    chosen = os.environ.get("KERNEL_SRC")
    if chosen:
        return _tree(Path(chosen).resolve(), _FIRST_GUEST)
    for builds in (PACKAGED, cache()):
        deployed = builds / "deployed.json"
        if deployed.is_file():
            return KernelSource(None, read_facts(deployed).get("source", ""), builds)
    for folder in (Path("/usr/src"), cache() / "source-6.12"):
        found = []
        for path in folder.glob("linux-source-*.tar.*"):
            match = re.match(r"linux-source-(\d+)\.(\d+)", path.name)
            if match and (int(match[1]), int(match[2])) >= _FIRST_GUEST:
                found.append(((int(match[1]), int(match[2])), path))
        if found:
            return _tarball(min(found)[1])
    raise UsageError(
        "no kernel source of 6.12 or newer in /usr/src",
        "`make setup` installs or fetches linux-source-6.12; KERNEL_SRC= takes an unpacked tree",
    )


def fetched_source(flavour: Flavour) -> Path | None:
    """Return the source of a flavour in FETCHED, if `vm/fetch-source` has fetched it."""
    folder = cache() / "-".join(["source", *FETCHED[flavour]])
    return next(folder.glob("linux-source-*.tar.xz"), None)


def version_named(name: str | None) -> str:
    """Return the version of a kernel, built or not, such as 6.12; "" if it cannot be told.

    Without a source here the distribution's is taken for the one that `make setup` fetches.
    """
    try:
        choice = kernel_named(name)
        while isinstance(choice, Patched):
            choice = choice.base
        if isinstance(choice, Path):
            return ".".join(map(str, version_of(choice)))
        identity = kernel_source(choice).identity
    except UsageError:
        identity = "linux-source-6.12" if name in {None, "guest", "wide"} else ""
    found = re.match(r"linux-source-(\d+\.\d+)", identity)
    return found[1] if found else ""


def _tarball(path: Path) -> KernelSource:
    return KernelSource(path, f"{path.name} {path.stat().st_size}")


def _tree(path: Path, oldest: tuple[int, int] = _OLDEST_KERNEL) -> KernelSource:
    version_of(path, oldest)
    return KernelSource(path, f"{path} {_tree_state(path)}")


def version_of(tree: Path, oldest: tuple[int, int] = _OLDEST_KERNEL) -> tuple[int, int]:
    """Read a tree's version.

    Raises: UsageError if it is no kernel tree, or too old.
    """
    try:
        makefile = (tree / "Makefile").read_text()
    except OSError as error:
        raise UsageError(f"{tree}: not a kernel tree: {error.strerror}") from error
    fields = dict(re.findall(r"^(VERSION|PATCHLEVEL) = (\d+)", makefile, re.MULTILINE))
    if len(fields) < 2:
        raise UsageError(f"{tree}: not a kernel tree: its Makefile has no version of a kernel")
    version = (int(fields["VERSION"]), int(fields["PATCHLEVEL"]))
    if version < oldest:
        raise UsageError(
            f"{tree}: kernel {version[0]}.{version[1]}; {oldest[0]}.{oldest[1]} is the oldest "
            "supported",
            "patches that virtual time needs do not apply to older ones (vm/README.md)",
        )
    return version


def _tree_state(tree: Path) -> str:
    """Hash the names, sizes and change times in a tree's _WATCHED_SOURCES."""
    digest = hashlib.sha256((tree / "Makefile").read_bytes())
    for part in _WATCHED_SOURCES:
        for path in sorted((tree / part).rglob("*")):
            state = path.lstat()
            digest.update(f"{path} {state.st_size} {state.st_mtime_ns}\n".encode())
    return digest.hexdigest()
