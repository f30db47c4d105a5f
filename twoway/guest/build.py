"""Building user-mode Linux's guest: kernel, modules, programs.

Kernel and programs are kept under a hash of everything that they depend on, and marked or renamed
when complete, so that an interrupted build is not mistaken for a finished one.
"""

import contextlib
import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from twoway.contract.writing import write_json
from twoway.errors import TwowayError
from twoway.guest.seals import BrokenBuildError, digests_of, read_facts, refuse_changed
from twoway.guest.source import (
    Choice,
    Flavour,
    KernelSource,
    fetched_source,
    flavour_of,
    kernel_source,
    version_of,
)
from twoway.messages import say
from twoway.paths import KERNEL_MODULES, VM, cache
from twoway.progress import Steps

# Configurations under vm/, each on top of those before it.
_FRAGMENTS: dict[Flavour, list[str]] = {
    "guest": ["guest.config"],
    "sanitized": ["guest.config", "sanitized.config"],
    "newest": ["guest.config", "newest.config"],
}
# Patches under vm/.
_PATCHES: dict[Flavour, str] = {
    "guest": "patches/*.patch",
    "sanitized": "patches/*.patch",
    "newest": "patches/upstream/*.patch",
}
# Programs to compile for a guest.
GUEST_PROGRAMS = [
    VM / "guest" / name for name in ("datagrams.c", "init.c", "observe.c", "stream.c")
]
# The program that carries out a plan, with its modules.
RUNNER_SOURCES = [
    VM / "guest" / name
    for name in (
        "run.py",
        "fork_server.py",
        "network.py",
        "offloads.py",
        "programs.py",
        "prompt.py",
    )
]
# What is preloaded into programs of the guest.
_LIBRARY = VM / "guest/fork_server.c"
GUEST_SOURCES = [
    *GUEST_PROGRAMS,
    _LIBRARY,
    VM / "guest/endpoint.h",
    VM / "guest/plan_clock.h",
]
_PROGRAMS: dict[Flavour, list[Path]] = {
    "guest": GUEST_PROGRAMS,
    "sanitized": [*GUEST_PROGRAMS, KERNEL_MODULES / "tests/dtm_fuzz.c"],
    "newest": GUEST_PROGRAMS,
}
# Arguments of make for our modules. The sanitised guest has the tests' modules as well, and checks
# the alignment in ours alone, because the kernel's own code does not pass.
_MODULE_SETTINGS: dict[Flavour, list[str]] = {
    "guest": ["KCFLAGS=-Werror"],
    "sanitized": ["KCFLAGS=-Werror -fsanitize=alignment", "TWOWAY_TESTS=m"],
    "newest": ["KCFLAGS=-Werror"],
}
# The sources, below kernel-modules/, of our modules and our parts of tc.
MODULE_SOURCES = (
    "*.c",
    "*.h",
    "dtm/*.[ch]",
    "testbed/*.[ch]",
    "include/uapi/linux/*.h",
    "compat/*.h",
    "tc/*.[ch]",
    "tc/Makefile",
    "Kbuild",
)
_COMPILE = ["cc", "-O2", "-Wall", "-Wextra", "-Werror"]
# Kbuild writes the versions of these programs into .config, though this kernel uses neither: hide
# them, so that the configuration is the same on every machine.
_NOT_USED = ("RUSTC=not-used", "PAHOLE=not-used")
# A kernel contains when, where and by whom it was built; fixed, so that builds are reproducible.
_REPRODUCIBLE = {
    "KBUILD_BUILD_TIMESTAMP": "1970-01-01",
    "KBUILD_BUILD_USER": "twoway",
    "KBUILD_BUILD_HOST": "twoway",
}
# The lines that make prints for 6.12 with our configuration: the length of the progress bar.
_LINES_OF_A_BUILD = 1310
# Large, and not needed by this kernel; the rest is unpacked because Kconfig reads all of it.
_NEVER_BUILT = ("arch/*/boot/dts/*", "drivers/gpu/drm/*.[ch]")
# As large, but the series for upstream has patches to them.
_NEVER_PATCHED = ("tools/testing/*", "Documentation/*.rst", "Documentation/*.yaml")


class BuildError(TwowayError):
    """The guest could not be built."""


@dataclass(frozen=True)
class Guest:
    """A built guest.

    Attributes:
        kernel: the user-mode Linux executable.
        programs: folder with init, stream, observe and the kernel modules.
        release: kernel release, as uname -r has it.
        has_seccomp: the kernel can run user space under seccomp instead of ptrace.
        key: identifies source, configuration, patches, modules and programs.
        flavour: which of the two configurations.
    """

    kernel: Path
    programs: Path
    release: str
    has_seccomp: bool
    key: str
    flavour: Flavour = "guest"


@dataclass(frozen=True)
class Recipe:
    """How a kernel is configured and compiled.

    Attributes:
        name: in the progress display.
        arch: as ARCH= has it.
        target: of make: the kernel's file.
        fragments: configurations under vm/, each on top of those before it.
        patches: under vm/, as a pattern; None for none.
        left_out: files of the source that are not unpacked.
    """

    name: str
    arch: str
    target: str
    fragments: Sequence[str]
    patches: str | None = None
    left_out: Sequence[str] = (*_NEVER_BUILT, *_NEVER_PATCHED)


def find_guest(choice: Choice = "guest") -> Guest | None:
    """Find the guest in the cache; None if anything is new or not built.

    Raises: BrokenBuildError if something there is not as it was built.
    """
    if choice == "newest" and fetched_source() is None:
        return None
    source, flavour, kernel = kernel_source(choice), flavour_of(choice), kernel_folder(choice)
    facts = kernel / "guest.json"
    programs = source.builds / "programs" / _programs_key(source, flavour)
    if not facts.is_file() or not programs.is_dir():
        return None
    known = read_facts(facts)
    if lacking := {"release", "has_seccomp"} - set(known):
        raise BrokenBuildError(facts, f"without {', '.join(sorted(lacking))}")
    refuse_changed(kernel / "build", known.get("digests", {}))  # none of builds from before
    if _seal(programs).is_file():
        refuse_changed(programs, read_facts(_seal(programs)))
    return Guest(
        kernel / "build/linux",
        programs,
        known["release"],
        known["has_seccomp"],
        programs.name,
        flavour,
    )


def _seal(programs: Path) -> Path:
    """Return the path of the programs' digests, beside their folder."""
    return programs.with_suffix(".json")


def built_guest(choice: Choice = "guest") -> Guest:
    """Find the guest of user-mode Linux.

    Raises: TwowayError if it is not built.
    """
    guest = find_guest(choice)
    if guest is None:
        if choice != "guest":
            how = "--sanitized" if choice == "sanitized" else f"--kernel {choice}"
            raise TwowayError(f"the kernel {choice} is not built: `twoway build {how}` does it")
        raise TwowayError("the guest is not built", "`make setup` (or `twoway build`) builds it")
    return guest


def build_guest(steps: Steps, choice: Choice = "guest") -> Guest:
    """Build the guest's kernel and programs, unless they are in the cache.

    Args:
        steps: shows progress.
        choice: which configuration, or what tree.

    Raises: BuildError with the end of the compiler's output; UsageError without a source.
    """
    if choice == "newest":
        steps.begin("newest kernel: fetch its source")
        call([str(VM / "fetch-newest-source")])
    source, flavour = kernel_source(choice), flavour_of(choice)
    if source.path is None:
        raise BuildError(
            f"the guest in {source.builds} is not this twoway's, or not whole",
            "deploy again; of Debian packages, install twoway and twoway-guest anew",
        )
    with build_lock(flavour):
        _remove_broken(choice)
        kernel = cache() / "kernel" / _kernel_key(source, flavour)
        if not (kernel / "guest.json").is_file():
            _build_kernel(source, kernel, steps, flavour)
        programs = cache() / "programs" / _programs_key(source, flavour)
        if not programs.is_dir():
            _build_modules(programs, kernel / "build", flavour, steps)
    guest = find_guest(choice)
    assert guest is not None
    return guest


def _build_modules(programs: Path, build: Path, flavour: Flavour, steps: Steps) -> None:
    kbuild = ["-C", str(build), "ARCH=um", "W=1", *_MODULE_SETTINGS[flavour]]
    build_programs(programs, _PROGRAMS[flavour], kbuild, steps, flavour)


def _remove_broken(choice: Choice) -> None:
    """Remove what is not as it was built, so that it is built again."""
    for _ in range(2):  # the kernel, and then the programs
        try:
            find_guest(choice)
        except BrokenBuildError as error:
            say(f"{error}: it is built again", markup=False)
            source, flavour = kernel_source(choice), flavour_of(choice)
            if error.path.is_relative_to(cache() / "kernel"):
                shutil.rmtree(cache() / "kernel" / _kernel_key(source, flavour))
            else:
                shutil.rmtree(cache() / "programs" / _programs_key(source, flavour))


def kernel_folder(choice: Choice) -> Path:
    """Return where this checkout's kernel is, or will be built.

    Raises: UsageError without a source.
    """
    source = kernel_source(choice)
    return source.builds / "kernel" / _kernel_key(source, flavour_of(choice))


def _kernel_key(source: KernelSource, flavour: Flavour) -> str:
    return content_hash(
        source.identity.encode(), *contents(VM, [*_FRAGMENTS[flavour], _PATCHES[flavour]])
    )


def _programs_key(source: KernelSource, flavour: Flavour) -> str:
    modules = [*MODULE_SOURCES]
    if "TWOWAY_TESTS=m" in _MODULE_SETTINGS[flavour]:
        modules += ["tests/*.[ch]", "tests/Kbuild"]
    return content_hash(
        _kernel_key(source, flavour).encode(),
        *(source.read_bytes() for source in GUEST_SOURCES),
        *contents(KERNEL_MODULES, modules),
    )


def contents(folder: Path, patterns: Sequence[str]) -> Iterator[bytes]:
    """Read the names and contents of the files that match patterns."""
    for pattern in patterns:
        for path in sorted(folder.glob(pattern)):
            yield path.name.encode()
            yield path.read_bytes()


def content_hash(*parts: bytes) -> str:
    """Hash contents to a key of 16 hexadecimal digits."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "little"))
        digest.update(part)
    return digest.hexdigest()[:16]


def copy_guest(guest: Guest, to: Path) -> None:
    """Copy a guest without the files that only builds need.

    deployed.json names the source that the guest was built from.
    """
    built = guest.kernel.parent.parent
    kernel, programs = to / "kernel" / built.name, to / "programs" / guest.programs.name
    (kernel / "build").mkdir(parents=True)
    shutil.copy2(guest.kernel, kernel / "build")
    shutil.copy2(built / "guest.json", kernel)
    shutil.copytree(guest.programs, programs)
    if _seal(guest.programs).is_file():
        shutil.copy2(_seal(guest.programs), _seal(programs))
    shutil.copy2(built / "guest.json", to / "deployed.json")


@contextlib.contextmanager
def build_lock(name: str) -> Iterator[None]:
    """Lock a build, so that one process at a time carries it out."""
    cache().mkdir(parents=True, exist_ok=True)
    with (cache() / f"build-{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextlib.contextmanager
def lock_if_free(name: str) -> Iterator[bool]:
    """Lock a build for a `with`, unless a process carries it out: tell whether it is locked."""
    with (cache() / f"build-{name}.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True


def _build_kernel(source: KernelSource, folder: Path, steps: Steps, flavour: Flavour) -> None:
    """Build user-mode Linux's kernel; guest.json is written last and marks it as complete."""
    compile_kernel(source, folder, recipe_of(flavour), steps)
    digests = digests_of([folder / "build/linux"])
    facts = _told_by(folder / "build") | {"source": source.identity, "digests": digests}
    write_json(folder / "guest.json", facts)


def recipe_of(flavour: Flavour) -> Recipe:
    """Return how a guest's kernel is configured and compiled."""
    left_out = _NEVER_BUILT if flavour == "newest" else (*_NEVER_BUILT, *_NEVER_PATCHED)
    return Recipe(flavour, "um", "linux", _FRAGMENTS[flavour], _PATCHES[flavour], left_out=left_out)


def _told_by(build: Path) -> dict[str, Any]:
    """Read off a kernel's build what backends have to know."""
    release = (build / "include/config/kernel.release").read_text().strip()
    return {"release": release, "has_seccomp": b"seccomp=" in (build / "linux").read_bytes()}


def build_commit(folder: Path, commit: str, steps: Steps) -> Guest:
    """Build a guest from a checkout with our patches, compiling what has changed since the last.

    Args:
        folder: with the checkout in the folder `source`.
        commit: names it.
        steps: shows progress.

    Raises: BuildError with the end of the compiler's output; UsageError of a kernel too old.
    """
    tree, build = folder / "source", folder / "build"
    flavour = flavour_of(tree)
    make_kernel(folder, recipe_of(flavour), steps)
    key = _programs_key(KernelSource(tree, commit), flavour)
    programs = folder / "programs" / key
    if not programs.is_dir():
        _build_modules(programs, build, flavour, steps)
    return Guest(build / "linux", programs, **_told_by(build), key=key, flavour=flavour)


def compile_kernel(source: KernelSource, folder: Path, recipe: Recipe, steps: Steps) -> None:
    """Unpack, patch, configure and compile a kernel, in place: a build tree remembers its path.

    Args:
        source: the tarball or tree.
        folder: made anew, with the folders `source` and `build`.
        recipe: which kernel.
        steps: shows progress.

    Raises: BuildError with the end of the compiler's output.
    """
    tree = folder / "source"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    steps.begin(f"{recipe.name} kernel: unpack")
    _unpack(source, tree, recipe.left_out)
    for patch in patches_for(recipe.patches, tree):
        call(["patch", "-p1", "--forward", "-d", str(tree), "-i", str(patch)])
    make_kernel(folder, recipe, steps)


def make_kernel(folder: Path, recipe: Recipe, steps: Steps) -> None:
    """Configure and compile what changed in the folder `source`, into the folder `build`.

    Raises: BuildError with the end of the compiler's output.
    """
    tree, output = folder / "source", folder / "build"
    paths = [VM / fragment for fragment in recipe.fragments]
    steps.begin(f"{recipe.name} kernel: configure")
    output.mkdir(exist_ok=True)
    make = ["make", "-C", str(tree), f"O={output}", f"ARCH={recipe.arch}", *_NOT_USED]
    call([*make, "tinyconfig"])
    call(
        [
            str(tree / "scripts/kconfig/merge_config.sh"),
            "-m",
            "-O",
            str(output),
            str(output / ".config"),
            *map(str, paths),
        ],
        cwd=tree,
    )
    call([*make, "olddefconfig"])
    _check_config(output / ".config", paths)
    jobs = len(os.sched_getaffinity(0))
    steps.begin(f"{recipe.name} kernel: compile ({jobs} jobs)", _LINES_OF_A_BUILD)
    call([*make, f"-j{jobs}", recipe.target, "modules"], on_line=steps.advance)


def _unpack(source: KernelSource, tree: Path, unneeded: Sequence[str]) -> None:
    assert source.path is not None
    if source.path.is_dir():
        shutil.copytree(source.path, tree, symlinks=True, ignore=shutil.ignore_patterns(".git"))
        return
    tree.mkdir()
    excluded = [f"--exclude=*/{pattern}" for pattern in unneeded]
    call(["tar", "-xf", str(source.path), "--strip-components=1", *excluded, "-C", str(tree)])


def patches_for(pattern: str | None, tree: Path) -> Iterator[Path]:
    """List our patches for a tree, without those that its version does not need (Needed-until:)."""
    for patch in sorted(VM.glob(pattern)) if pattern else ():
        if patch.name.startswith("0000-"):  # a series' cover letter
            continue
        until = re.search(r"^Needed-until: (\d+)\.(\d+)$", patch.read_text(), re.MULTILINE)
        if not until or version_of(tree) < (int(until[1]), int(until[2])):
            yield patch


def _check_config(config: Path, fragments: list[Path]) -> None:
    """Raise BuildError if Kconfig has dropped an option of the fragments.

    Kconfig silently drops options whose dependencies are not met. A fragment may take back what
    one before it asks for, with "# CONFIG_X is not set".
    """
    have = set(config.read_text().splitlines())
    wanted: dict[str, str] = {}
    asked = re.compile(r"^(?:# )?(CONFIG_\w+)(?:=(.*)| is not set)$", re.MULTILINE)
    for fragment in fragments:
        wanted |= asked.findall(fragment.read_text())
    missing = [f"{key}={value}" for key, value in wanted.items() if value]
    missing = [line for line in missing if line not in have]
    if missing:
        raise BuildError(f"{fragments[-1]}: this kernel does not take {', '.join(missing)}")


def build_programs(
    folder: Path,
    sources: Sequence[Path],
    modules: Sequence[str] | Mapping[str, bytes],
    steps: Steps,
    name: str,
) -> None:
    """Build a guest's programs, our modules and our parts of tc.

    Args:
        folder: where the results go; it appears when all of them are complete.
        sources: programs in C, a file each.
        modules: the arguments of make that build our modules for the kernel; or the contents of
            modules that are built already, by file name.
        steps: shows progress.
        name: the guest's name in the progress display.

    Raises: BuildError with the end of the compiler's output.
    """
    steps.begin(f"{name} programs and kernel modules")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".building-", dir=folder.parent) as scratch:
        built, tree = Path(scratch) / "built", Path(scratch) / "modules"
        built.mkdir()
        for source in sources:
            call([*_COMPILE, "-static", "-o", str(built / source.stem), str(source), "-lm"])
        library = built / f"{_LIBRARY.stem}.so"
        call([*_COMPILE, "-shared", "-fPIC", "-o", str(library), str(_LIBRARY)])
        shutil.copytree(KERNEL_MODULES, tree, ignore=shutil.ignore_patterns("*.md"))
        if isinstance(modules, Mapping):
            for module, content in modules.items():
                (tree / module).write_bytes(content)
        else:
            # Not git's revision: the same sources give the same modules, whatever the commit
            # (docs/decisions/0029).
            call(["make", *modules, f"M={tree}", f"TWOWAY_REVISION={folder.name}", "modules"])
        call(["make", "-C", str(tree / "tc")])
        for made in [*tree.rglob("*.ko"), *tree.glob("tc/q_*.so"), tree / "tc/dtm"]:
            made.rename(built / made.name)
        write_json(_seal(folder), digests_of(built.iterdir()))
        built.rename(folder)


def call(
    argv: list[str], cwd: Path | None = None, on_line: Callable[[], None] | None = None
) -> None:
    """Run a program of the build, which ends with us, whatever ends us.

    Args:
        argv: the program and its arguments.
        cwd: its working directory.
        on_line: called after each line of its output.

    Raises: BuildError with the end of the output if the program fails.
    """
    tail: list[str] = []
    environment = {**os.environ, **_REPRODUCIBLE}
    environment.pop("MAKEFLAGS", None)  # twoway itself may run under make
    environment.pop("MFLAGS", None)
    with subprocess.Popen(
        ["setpriv", "--pdeathsig", "TERM", "--", *argv],  # nothing goes on after us
        cwd=cwd,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            tail = [*tail[-40:], line.rstrip()]
            if on_line:
                on_line()
    if process.returncode != 0:
        raise BuildError(f"{' '.join(argv[:6])} ...: failed\n" + "\n".join(tail))
