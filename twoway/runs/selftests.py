"""Selftests of the kernel that are programs, each in a guest of its own, in virtual time.

A test and the files beside it are those of the source of the guest's kernel, compiled; other
programs that it calls are this machine's.
"""

import json
import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from capture_analysis.printable import printable

from twoway.backends.sandbox import STALL_S
from twoway.contract.files import read_run_file
from twoway.errors import RunError
from twoway.guest.cache import Guest
from twoway.runs.packetdrill import Verdict, run_alone

_TESTS = "/mnt/selftests"
# The runner allows the processes of a script of packetdrill; net/mptcp/diag.sh has 600.
_MANY_TASKS = 'echo 2000 > /proc/sys/kernel/threads-max; exec "$0" "$@"'
# The kernel's own runner, kselftest/runner.sh, allows a test this time if its folder has no
# `settings` with another one. 0 is no limit there, and that of the folder net here.
_LIMIT_S, _MOST_S = 45, 3600
_TIMEOUT = re.compile(r"^timeout=(\d+)$", re.MULTILINE)
# kselftest.h: the exit status of a test that the kernel cannot run.
_SKIP = 4
# The lines that tell of one check; a test of several namespaces repeats some within others.
_CHECK = re.compile(r"^(?:# )*((?:not )?ok \d+.*)", re.MULTILINE)
_FAILED = re.compile(r"not ok \d+ *(?:- )?")
_SKIPPED = re.compile(r"# SKIP *(.*)")
_OUTPUT_BYTES = 16 << 20
_LINE_BYTES = 128


@dataclass(frozen=True)
class Selftest:
    """A test of a collection.

    Attributes:
        tests: the folder of all selftests in a kernel's source.
        collection: the folder in it, such as net/mptcp.
        file: the program or script in that folder.
    """

    tests: Path
    collection: str
    file: str

    @property
    def name(self) -> str:
        """The test's name in reports."""
        return f"{self.collection} {self.file}"

    @property
    def limit_s(self) -> int:
        """The time that the test may take on its own clock."""
        settings = self.tests / self.collection / "settings"
        found = _TIMEOUT.search(settings.read_text()) if settings.is_file() else None
        return (int(found[1]) or _MOST_S) if found else _LIMIT_S


def run_selftest(test: Selftest, guest: Guest) -> Verdict:
    """Run a test in a guest of its own; a guest that fails is a failure of the test."""
    if not (test.tests / test.collection / test.file).is_file():
        return Verdict(test.name, "it is not there: it does not compile on this machine")
    with TemporaryDirectory(prefix="twoway-selftest-") as scratch:
        folder = Path(scratch)
        asked = {
            "command": ["sh", "-c", _MANY_TASKS, *_words(test)],
            "folder": f"{_TESTS}/{test.collection}",
            "limit_s": test.limit_s,
        }
        try:
            stall_s = max(STALL_S, test.limit_s)
            run_alone(guest, folder, asked, {_TESTS: test.tests}, ipv6=True, stall_s=stall_s)
            return _verdict(test, folder)
        except (RunError, OSError, ValueError, KeyError, TypeError) as error:
            return Verdict(test.name, f"the guest failed: {error}")


def _words(test: Selftest) -> list[str]:
    """Return the command of a test: not every script of the kernel's is executable."""
    with (test.tests / test.collection / test.file).open("rb") as file:
        first = file.readline(_LINE_BYTES)
    interpreter = shlex.split(first[2:].decode()) if first.startswith(b"#!") else []
    return [*interpreter, f"./{test.file}"]


def _verdict(test: Selftest, folder: Path) -> Verdict:
    """Judge a test by what its guest left."""
    ended = json.loads(read_run_file(folder, "ended.json"))
    out, err = (
        read_run_file(folder, f"{each}.txt", _OUTPUT_BYTES) for each in ("stdout", "stderr")
    )
    checks = [printable(each)[:200] for each in _CHECK.findall(out)]
    told = tuple(each for each in checks if _FAILED.match(each) or "# SKIP" in each)
    failed = [_FAILED.sub("", each) for each in told if _FAILED.match(each)]
    last = printable((err.strip() or out.strip()).rpartition("\n")[2])[:200]
    last = last.removeprefix("[SKIP] ")
    if ended["status"] == _SKIP:
        found = next((each[1] for each in map(_SKIPPED.search, told) if each and each[1]), last)
        return Verdict(test.name, skipped=found or "it does not say why", checks=told)
    if ended["status"] == 0 and not failed:
        return Verdict(test.name, checks=told)
    if not ended["ended"]:
        problem = f"it still ran after {test.limit_s} s of its clock"
    elif failed:
        problem = f"{len(failed)} of {len(checks)} checks, the first: {failed[0]}"
    else:
        problem = f"exit status {ended['status']}: {last or 'no word'}"
    return Verdict(test.name, problem, said=f"{out}\n{err}".strip(), checks=told)
