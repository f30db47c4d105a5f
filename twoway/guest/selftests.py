"""The selftests in a kernel's source: finding them, and compiling those that are programs."""

import os
import re
import subprocess
from pathlib import Path

from twoway.errors import UsageError
from twoway.guest.cache import Guest, build_lock
from twoway.guest.kernel import BuildError, build_environment, call
from twoway.messages import say, suggest
from twoway.progress import Steps


def selftests_of(guest: Guest) -> Path:
    """Return the folder of the selftests in the source of a guest."""
    return guest.kernel.parent.parent / "source/tools/testing/selftests"


def collections_in(tests: Path) -> list[str]:
    """List the folders with selftests: those with a Makefile for them, or with scripts."""
    found = [*tests.rglob("*.pkt")]
    found += (each for each in tests.glob("*/**/Makefile") if "lib.mk" in each.read_text())
    return sorted({str(each.parent.relative_to(tests)) for each in found})


def build_selftests(guest: Guest, collection: str, only: str, steps: Steps) -> list[str]:
    """Compile the programs of a collection beside its scripts, by the kernel's own Makefile.

    The headers are those of the guest's source; `only` is one test, "" all of the collection.

    Returns: the names of its tests.
    Raises: BuildError if the headers cannot be made, or the Makefile fails; UsageError without
        such a test, or any.
    """
    built = guest.kernel.parent.parent
    folder, headers = selftests_of(guest) / collection, built / "uapi"
    make = ["make", "-C", str(folder), f"OUTPUT={folder}", f"COLLECTION={collection}"]
    with build_lock(f"selftests-{built.name}"):
        if not headers.is_dir():
            steps.begin("headers of the kernel")
            place = built / "uapi.new"
            call(["make", "-C", f"{built}/source", f"O={place}", "ARCH=x86", "headers"])
            place.rename(headers)
        names = _names(make)
        if not names:
            raise UsageError(f"{collection}: its Makefile has no test")
        if only and only not in names:
            raise UsageError(f"{only:.80}: no test of {collection}{suggest(only, names)}")
        targets = _programs_of(folder, only) if only else ["all"]
        if targets:
            steps.begin(f"programs of {collection}")
            jobs = f"-j{len(os.sched_getaffinity(0))}"
            try:
                call([*make, f"KHDR_INCLUDES=-isystem {headers}/usr/include", "-k", jobs, *targets])
            except BuildError as error:
                say(f"{collection}: not all of it compiles: {error.reason}")
    return [only] if only else names


def _names(make: list[str]) -> list[str]:
    """List the tests that a Makefile of selftests names."""
    words, env = [*make, "-s", "emit_tests"], build_environment()
    done = subprocess.run(words, env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BuildError(f"{' '.join(words)}: failed\n{done.stderr.strip()}")
    return [line.partition(":")[2] for line in done.stdout.splitlines() if ":" in line]


def _programs_of(folder: Path, test: str) -> list[str]:
    """List the targets of a test: itself, or the programs that its script names."""
    file = folder / test
    if not file.is_file() or not file.read_bytes().startswith(b"#!"):
        return [str(file)]
    words = set(re.findall(r"[\w-]+", file.read_text(errors="replace")))
    return [str(each.with_suffix("")) for each in sorted(folder.glob("*.c")) if each.stem in words]
