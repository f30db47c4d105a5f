"""Building a guest's programs, our modules and our parts of tc."""

import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from twoway.contract.writing import write_json
from twoway.guest.kernel import call, kernel_key
from twoway.guest.seals import content_hash, contents, digests_of
from twoway.guest.source import Flavour, KernelSource
from twoway.paths import KERNEL_MODULES, VM
from twoway.progress import Steps

# Programs to compile for a guest.
GUEST_PROGRAMS = [
    VM / "guest" / name for name in ("datagrams.c", "init.c", "observe.c", "stream.c")
]
# The program that carries out a plan, with its modules.
RUNNER_SOURCES = sorted((VM / "guest").glob("*.py"))
# Libraries that programs of the guest preload.
_LIBRARIES = [VM / "guest/fork_server.c", VM / "guest/times.c"]
GUEST_SOURCES = [
    *GUEST_PROGRAMS,
    *_LIBRARIES,
    VM / "guest/endpoint.h",
    VM / "guest/plan_clock.h",
    VM / "guest/stream_end.h",
]
# The programs and sources of a guest that QEMU boots.
BOOTED_PROGRAMS = [*GUEST_PROGRAMS, VM / "guest/boot.c"]
BOOTED_SOURCES = [*GUEST_SOURCES, VM / "guest/boot.c"]
_SANITIZED_PROGRAMS = [*GUEST_PROGRAMS, KERNEL_MODULES / "tests/fuzz/qdisc_fuzz.c"]
# Arguments of make for our modules. The sanitised guest has the tests' modules as well, and checks
# the alignment in ours only, because the kernel's own code does not pass.
_SANITIZED_SETTINGS = ["KCFLAGS=-Werror -fsanitize=alignment", "TWOWAY_TESTS=m"]
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
# What `make` leaves in kernel-modules/, and what nothing here compiles: not copied.
_LEFT_OUT = shutil.ignore_patterns(
    *("*.md", "*.o", "*.ko", "*.mod", "*.mod.c", "*.cmd", "*.so", "modules.order", "Module.symvers")
)
_COMPILE = ["cc", "-O2", "-Wall", "-Wextra", "-Werror"]


def build_guest_programs(programs: Path, build: Path, flavour: Flavour, steps: Steps) -> None:
    """Build the programs and modules of a guest of user-mode Linux."""
    sanitized = flavour == "sanitized"
    settings = _SANITIZED_SETTINGS if sanitized else ["KCFLAGS=-Werror"]
    sources = _SANITIZED_PROGRAMS if sanitized else GUEST_PROGRAMS
    build_programs(
        programs, sources, ["-C", str(build), "ARCH=um", "W=1", *settings], steps, flavour
    )


def programs_key(source: KernelSource, flavour: Flavour) -> str:
    """Hash everything from which a guest's programs and modules are made, with the kernel."""
    modules = [*MODULE_SOURCES]
    if flavour == "sanitized":
        modules += ["tests/*.[ch]", "tests/fuzz/*.[ch]", "tests/Kbuild"]
    return sources_key(kernel_key(source, flavour).encode(), modules=modules)


def sources_key(
    *kernel: bytes,
    programs: Sequence[Path] = GUEST_SOURCES,
    modules: Sequence[str] = MODULE_SOURCES,
) -> str:
    """Hash what names a kernel, with the sources of programs and modules for it."""
    sources = (source.read_bytes() for source in programs)
    return content_hash(*kernel, *sources, *contents(KERNEL_MODULES, modules))


def build_programs(
    folder: Path,
    sources: Sequence[Path],
    modules: Sequence[str] | Mapping[str, bytes],
    steps: Steps,
    name: str,
) -> None:
    """Build a guest's programs, our modules and our parts of tc.

    Args:
        folder: the folder for the results; it appears when all of them are complete.
        sources: programs in C, one file each.
        modules: the arguments of make that build our modules for the kernel; or the contents of
            built modules by file name.
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
        for source in _LIBRARIES:
            library = built / f"{source.stem}.so"
            call([*_COMPILE, "-shared", "-fPIC", "-o", str(library), str(source)])
        shutil.copytree(KERNEL_MODULES, tree, ignore=_LEFT_OUT)
        if isinstance(modules, Mapping):
            for module, content in modules.items():
                (tree / module).write_bytes(content)
        else:
            # No revision: a module changes with the sources that it includes, and with no other
            # commit or source (decision 0029).
            call(["make", *modules, f"M={tree}", "TWOWAY_REVISION=by-content", "modules"])
        call(["make", "-C", str(tree / "tc")])
        for made in [*tree.rglob("*.ko"), *tree.glob("tc/q_*.so"), tree / "tc/dtm"]:
            made.rename(built / made.name)
        write_json(seal(folder), digests_of(built.iterdir()))
        built.rename(folder)


def seal(programs: Path) -> Path:
    """Return the path of the programs' digests, beside their folder."""
    return programs.with_suffix(".json")
