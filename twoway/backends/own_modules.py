"""Building the kernel modules of an experiment, in the sandbox.

A Kbuild is a makefile, which may run anything. It runs with a guest's view of the host and a folder
of its own; its time, its output and its disk space are limited.
"""

import contextlib
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from twoway.confined_process import run_confined
from twoway.confinement import NOBODY, confined_command
from twoway.contract.files import open_run_file
from twoway.contract.folders import remove_folder
from twoway.contract.plan import OWN_MODULES, LoadModule
from twoway.contract.writing import refuse_full_disk
from twoway.errors import UsageError
from twoway.guest.cache import Guest
from twoway.guest.seals import content_hash
from twoway.paths import cache

_SCRATCH = "/mnt/run"
# Room in memory for the compiler's files.
_SHM_MIB = 256
_MOST_LINES = 20
# Limit of a file that a build writes, and of its output.
_MOST_BYTES = 64 << 20
_LIMITS = ("prlimit", f"--fsize={_MOST_BYTES}")
# Our own modules take seconds to build, and minutes on an emulated processor.
LONGEST_S = 600


def own_modules(guest: Guest, steps: Sequence[LoadModule]) -> dict[str, Path]:
    """Build the modules that steps load for a guest's kernel, unless the cache has them.

    Returns: the folder with the modules, by its path in the sandbox.
    Raises: UsageError with the compiler's errors, or if the guest came without its build tree.
    """
    if not steps:
        return {}
    if not (guest.kernel.parent / "Makefile").is_file():
        raise UsageError(
            "own_modules: this guest was installed ready-made, without the build tree "
            "that modules need",
            "run the experiment from a checkout",
        )
    parts = [guest.key, *(part for s in steps for item in s.sources.items() for part in item)]
    built = cache() / "own-modules" / content_hash(*(part.encode() for part in parts))
    if not built.is_dir():
        with _new_folder(built) as folder:
            for step in steps:
                _build(guest, step, folder)
    return {OWN_MODULES: built}


class CompileError(UsageError):
    """A module that does not build, with the compiler's errors."""


@contextlib.contextmanager
def _new_folder(path: Path) -> Iterator[Path]:
    """Make a folder under a temporary name, and rename it when it is complete."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".building-", dir=path.parent) as scratch:
        folder = Path(scratch) / "built"
        folder.mkdir()
        yield folder
        try:
            folder.rename(path)
        except OSError:
            if not path.is_dir():  # otherwise another process was faster
                raise


@contextlib.contextmanager
def _scratch() -> Iterator[Path]:
    """Make a folder for a build, which may leave anything in it."""
    folder = Path(tempfile.mkdtemp(prefix="twoway-build-"))
    try:
        yield folder
    finally:
        remove_folder(folder)


def _build(guest: Guest, step: LoadModule, into: Path) -> None:
    kernel = guest.kernel.parent
    with _scratch() as scratch:
        for name, text in step.sources.items():
            (scratch / name).write_text(text, "utf-8")
        for path in (scratch, *scratch.iterdir()):
            if os.geteuid() == 0:  # then the compiler runs as the user nobody (confinement.py)
                os.chown(path, NOBODY, NOBODY)
        place = _made_at(kernel)
        trees = {f"{place}/source": kernel.parent / "source", f"{place}/build": kernel}
        box = confined_command(trees, scratch, shm_mib=_SHM_MIB)
        make = ["make", "-C", f"{place}/build", "ARCH=um", f"M={_SCRATCH}", "modules"]
        try:
            done = run_confined(
                [*box, *_LIMITS, *make],
                longest_s=LONGEST_S,
                look=partial(refuse_full_disk, scratch),
            )
        except TimeoutError as error:
            slow = f"own_modules: {step.module}: its build has not ended after {LONGEST_S} s"
            raise CompileError(slow) from error
        if done.most_bytes >= _MOST_BYTES:
            raise CompileError(
                f"own_modules: {step.module}: its build prints more than {_MOST_BYTES >> 20} MiB"
            )
        left = scratch / step.file
        if done.status or left.is_symlink() or not left.is_file():
            said = (done.answer + done.words).decode(errors="replace")
            raise CompileError(_errors(guest, step, said))
        with open_run_file(scratch, step.file) as made, (into / step.file).open("xb") as kept:
            shutil.copyfileobj(made, kept)


def _made_at(kernel: Path) -> Path:
    """Return the folder in which a kernel was built, named by its makefiles."""
    makefile = (kernel / "Makefile").read_text("utf-8")
    found = re.search(r"^include (/.+)/source/Makefile$", makefile, re.MULTILINE)
    return Path(found[1]) if found else kernel.parent


def _errors(guest: Guest, step: LoadModule, output: str) -> str:
    """Return the compiler's errors from the output of make.

    If a source of the module itself has errors, those in the kernel's headers are left out.
    """
    text = output
    place = _made_at(guest.kernel.parent)
    for folder in (_SCRATCH, place / "source", place / "build"):
        text = text.replace(f"{folder}{os.sep}", "")
    lines = [line for line in text.splitlines() if re.search(r"error: |undefined!", line)]
    own = [line for line in lines if line.partition(":")[0] in step.sources]
    shown = own or lines or text.splitlines()[-5:]
    more = [f"... and {len(shown) - _MOST_LINES} more"] if len(shown) > _MOST_LINES else []
    return "\n".join(
        [
            f"own_modules: {step.module} does not build for {guest.release}:",
            *shown[:_MOST_LINES],
            *more,
        ]
    )
