"""User-mode Linux's guest: building it, and finding and copying it in the cache.

Kernel and programs are kept under a hash of all their sources, and marked or renamed when complete,
so that an interrupted build does not look finished.
"""

import contextlib
import fcntl
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from twoway.contract.files import open_lock
from twoway.contract.writing import write_json
from twoway.errors import TwowayError
from twoway.guest.kernel import BuildError, call, compile_kernel, kernel_key, make_kernel, recipe_of
from twoway.guest.patched import build_patched
from twoway.guest.programs import build_guest_programs, programs_key, seal
from twoway.guest.seals import BrokenBuildError, digests_of, read_facts, refuse_changed
from twoway.guest.source import (
    FETCHED,
    Choice,
    Flavour,
    KernelSource,
    Patched,
    fetched_source,
    flavour_of,
    kernel_source,
)
from twoway.messages import say
from twoway.paths import VM, cache
from twoway.progress import Steps


@dataclass(frozen=True)
class Guest:
    """A built guest.

    Attributes:
        kernel: the user-mode Linux executable.
        programs: folder with init, stream, observe and the kernel modules.
        release: kernel release, as uname -r prints it.
        has_seccomp: True if the kernel can run user space under seccomp instead of ptrace.
        key: identifies source, configuration, patches, modules and programs.
        flavour: the kind of kernel: guest, sanitized or newest; or a tree.
    """

    kernel: Path
    programs: Path
    release: str
    has_seccomp: bool
    key: str
    flavour: Flavour = "guest"


def find_guest(choice: Choice = "guest") -> Guest | None:
    """Find the guest in the cache; None if it is not built from the present sources.

    Raises: BrokenBuildError if a file of it has changed since the build.
    """
    if choice in FETCHED and fetched_source(choice) is None:
        return None
    source, flavour, kernel = kernel_source(choice), flavour_of(choice), kernel_folder(choice)
    facts = kernel / "guest.json"
    programs = source.builds / "programs" / programs_key(source, flavour)
    if not facts.is_file() or not programs.is_dir():
        return None
    known = read_facts(facts)
    if lacking := {"release", "has_seccomp"} - set(known):
        raise BrokenBuildError(facts, f"without {', '.join(sorted(lacking))}")
    refuse_changed(kernel / "build", known.get("digests", {}))  # older builds have none
    if seal(programs).is_file():
        refuse_changed(programs, read_facts(seal(programs)))
    return Guest(
        kernel / "build/linux",
        programs,
        known["release"],
        known["has_seccomp"],
        programs.name,
        flavour,
    )


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

    Raises: BuildError with the end of the compiler's output, or if a source changes during the
        build; UsageError without a source.
    """
    if choice in FETCHED:
        steps.begin(f"{choice} kernel: fetch its source")
        call([str(VM / "fetch-source"), *FETCHED[choice]])
    source, flavour = kernel_source(choice), flavour_of(choice)
    if source.path is None:
        if found := find_guest(choice):
            return found
        if choice != "guest":
            raise BuildError(
                f"the kernel {choice} cannot be built: the guest in {source.builds} is ready-made, "
                "without its source",
                "a checkout builds it: `make setup`, and then this command",
            )
        raise BuildError(
            f"the guest in {source.builds} does not belong to this twoway, or is incomplete",
            "deploy again; of packages or wheels, install twoway and twoway-guest of one version",
        )
    if isinstance(choice, Patched):
        build_guest(steps, choice.base)
    with build_lock(flavour):
        _remove_broken(choice)
        kernel = cache() / "kernel" / kernel_key(source, flavour)
        # Modules are compiled from the source as well.
        if not all((kernel / each).is_file() for each in ("guest.json", "source/Makefile")):
            _build_kernel(source, kernel, steps, choice)
        programs = cache() / "programs" / programs_key(source, flavour)
        if not programs.is_dir():
            build_guest_programs(programs, kernel / "build", flavour, steps)
    guest = find_guest(choice)
    if guest is None:
        raise BuildError("a source of the guest changed while it was built", "build it again")
    return guest


def _remove_broken(choice: Choice) -> None:
    """Delete cached builds whose digests changed, so that they are built again."""
    for _ in range(2):  # the kernel, and then the programs
        try:
            find_guest(choice)
        except BrokenBuildError as error:
            say(f"{error}: it is built again")
            source, flavour = kernel_source(choice), flavour_of(choice)
            if error.path.is_relative_to(cache() / "kernel"):
                shutil.rmtree(cache() / "kernel" / kernel_key(source, flavour))
            else:
                shutil.rmtree(cache() / "programs" / programs_key(source, flavour))


def kernel_folder(choice: Choice) -> Path:
    """Return the folder of this checkout's kernel, built or not.

    Raises: UsageError without a source.
    """
    source = kernel_source(choice)
    return source.builds / "kernel" / kernel_key(source, flavour_of(choice))


def copy_guest(guest: Guest, to: Path) -> None:
    """Copy a guest without files that only builds need.

    deployed.json names the source of the guest.
    """
    built = guest.kernel.parent.parent
    kernel, programs = to / "kernel" / built.name, to / "programs" / guest.programs.name
    (kernel / "build").mkdir(parents=True)
    shutil.copy2(guest.kernel, kernel / "build")
    shutil.copy2(built / "guest.json", kernel)
    shutil.copytree(guest.programs, programs)
    if seal(guest.programs).is_file():
        shutil.copy2(seal(guest.programs), seal(programs))
    shutil.copy2(built / "guest.json", to / "deployed.json")


@contextlib.contextmanager
def build_lock(name: str) -> Iterator[None]:
    """Lock a build, so that one process at a time carries it out."""
    cache().mkdir(parents=True, exist_ok=True)
    with open_lock(cache(), f"build-{name}.lock") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextlib.contextmanager
def lock_if_free(name: str) -> Iterator[bool]:
    """Lock a build for a `with`, unless a process carries it out; yield whether it is locked."""
    with open_lock(cache(), f"build-{name}.lock") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True


def _build_kernel(source: KernelSource, folder: Path, steps: Steps, choice: Choice) -> None:
    """Build user-mode Linux's kernel; guest.json is written last and marks it as complete."""
    recipe = recipe_of(flavour_of(choice))
    if isinstance(choice, Patched):
        build_patched(kernel_folder(choice.base), choice.patch, folder, recipe, steps)
    else:
        compile_kernel(source, folder, recipe, steps)
    digests = digests_of([folder / "build/linux"])
    facts = _told_by(folder / "build") | {"source": source.identity, "digests": digests}
    write_json(folder / "guest.json", facts)


def _told_by(build: Path) -> dict[str, Any]:
    """Read the facts that backends need from a kernel's build."""
    release = (build / "include/config/kernel.release").read_text().strip()
    return {"release": release, "has_seccomp": b"seccomp=" in (build / "linux").read_bytes()}


def build_commit(folder: Path, commit: str, flavour: Flavour, steps: Steps) -> Guest:
    """Build a guest from the checkout in `source`, compiling only the changes since the last one.

    Raises: BuildError with the end of the compiler's output.
    """
    tree, build = folder / "source", folder / "build"
    make_kernel(folder, recipe_of(flavour), steps)
    key = programs_key(KernelSource(tree, commit), flavour)
    programs = folder / "programs" / key
    if not programs.is_dir():
        build_guest_programs(programs, build, flavour, steps)
    return Guest(build / "linux", programs, **_told_by(build), key=key, flavour=flavour)
