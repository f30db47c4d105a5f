"""Kernels for a machine with several processors in QEMU, with every checker of races.

They are built from the source of user-mode Linux's guest, without its patches, into the cache.
There are two kernels, because KASAN and KCSAN exclude each other.
"""

import re
from pathlib import Path
from typing import Literal

from twoway.contract.writing import write_json
from twoway.guest.cache import build_lock
from twoway.guest.kernel import BuildError, Recipe, compile_kernel
from twoway.guest.programs import (
    BOOTED_PROGRAMS,
    BOOTED_SOURCES,
    MODULE_SOURCES,
    build_programs,
    sources_key,
)
from twoway.guest.seals import content_hash
from twoway.guest.source import kernel_source
from twoway.guest.stock_kernel import StockKernel
from twoway.paths import KERNEL_MODULES, VM, cache
from twoway.progress import Steps

# "smp" has the checkers of the sanitised guest (KASAN, lockdep, ...), "kcsan" that of data races.
Checkers = Literal["smp", "kcsan"]
# Configurations under vm/, each on top of the earlier ones.
_FRAGMENTS: dict[Checkers, list[str]] = {
    "smp": ["guest.config", "sanitized.config", "smp.config"],
    "kcsan": ["guest.config", "smp.config", "kcsan.config"],
}
_PROGRAMS = [*BOOTED_PROGRAMS, KERNEL_MODULES / "tests/fuzz/qdisc_fuzz.c"]
_TESTS = ("tests/*.[ch]", "tests/Kbuild", "tests/fuzz/*.[ch]")
# A line of a configuration that sets or unsets an option.
_OPTION = re.compile(r"^(?:# )?CONFIG_\w+(?:=.*| is not set)$", re.MULTILINE)
_IMAGE = "arch/x86/boot/bzImage"


def build_smp(checkers: Checkers, steps: Steps) -> StockKernel:
    """Build the kernel, our modules and their tests' modules, unless the cache has them.

    Raises: BuildError with the end of the compiler's output; UsageError without a source.
    """
    source = kernel_source()
    if source.path is None:
        raise BuildError("a host with a deployed guest builds no kernels")
    folder = kernel_folder(checkers)
    complete, modules = folder / "guest.json", folder / "modules"
    build = folder / "build"
    with build_lock(checkers):
        if not complete.is_file():
            recipe = Recipe(checkers, "x86_64", "bzImage", _FRAGMENTS[checkers])
            compile_kernel(source, folder, recipe, steps)
            release = (build / "include/config/kernel.release").read_text().strip()
            (modules / release).mkdir(parents=True)
            # All modules are built in.
            (modules / release / "modules.dep").touch()
            write_json(complete, {"release": release, "source": source.identity})
        tests = [*MODULE_SOURCES, *_TESTS]
        key = sources_key(folder.name.encode(), programs=BOOTED_SOURCES, modules=tests)
        programs = cache() / "programs" / key
        if not programs.is_dir():
            kbuild = ["-C", str(build), "ARCH=x86_64", "KCFLAGS=-Werror", "TWOWAY_TESTS=m"]
            build_programs(programs, _PROGRAMS, kbuild, steps, checkers)
    release = next(modules.iterdir()).name
    package = f"{release} with {checkers}.config"
    return StockKernel(build / _IMAGE, modules, programs, release, package, programs.name)


def kernel_folder(checkers: Checkers) -> Path:
    """Return the folder of this checkout's kernel, built or not.

    Raises: UsageError without a source.
    """
    options = [_OPTION.findall((VM / name).read_text()) for name in _FRAGMENTS[checkers]]
    key = content_hash(kernel_source().identity.encode(), repr(options).encode())
    return cache() / "kernel" / key
