"""A guest as processes of this machine: its folders, its life and its verdict.

A guest gets a folder of its own in the run's folder, and sees nothing else there. When it has
ended, its plain files are moved out (guest_files.py). Every run sees the same paths, so that the
guest cannot depend on the checkout's place on the host.
"""

import contextlib
import fcntl
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from twoway.backends.backend import Progress
from twoway.backends.guest_files import remove_special_files, take_over
from twoway.confined_process import lives, start_confined
from twoway.confinement import NOBODY
from twoway.contract.files import open_lock, open_run_file, read_run_file
from twoway.contract.folders import give
from twoway.contract.model import read_json
from twoway.contract.plan import PLAN
from twoway.contract.writing import refuse_full_disk
from twoway.errors import RunError
from twoway.messages import cut_line
from twoway.paths import ROOT, cache

CONSOLE_LOG = "log/console.txt"
PROGRESS_FILE = "sockets/progress.json"
# A report of progress has some 100 bytes, and is read ten times a second.
_PROGRESS_BYTES = 4096
# Limit of the words of the guest's runner: a longer text is not from it.
_WORDS_BYTES = 1 << 20
# The folder, in a run's folder, that the guest writes to while it lives; /mnt/run in the sandbox.
GUEST_FOLDER = ".guest"
# A guest is stuck if its clock has not moved for this long. A guest in real time reports nothing
# between set-up and the start of traffic, 22 s; user-mode Linux on an emulated machine with half a
# processor took more than 30 s to start Python.
STALL_S = 120.0
# The checkout's name in a guest (decision 0030).
CHECKOUT = "/mnt/twoway"
# The path on which a guest finds its programs (vm/guest/init.c), whatever the caller's PATH.
GUEST_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
RUNNER = ("/mnt/venv/bin/python", "-I", "-S", f"{CHECKOUT}/vm/guest/run.py")

# Errors with which the guest's kernel answers programs that want what it lacks.
_LACKED = re.compile(
    r"(?:Protocol|Operation|Address family) not supported|Unknown device type|"
    r"Multipath support not enabled|qdisc kind is unknown|(?:answers|open|sysctl \S+): No such file"
)
_LACKING = "`kernel: wide` has MPTCP, tunnels, netfilter and more (docs/limits.md)"
# The warning of tcp_snd_cwnd_set(); other warnings of this file are a thousand lines below it.
_NO_WINDOW = re.compile(r"include/net/tcp\.h:1\d{3} ")
# Lines in which a kernel or one of its checkers reports a fault or an ignored module parameter. The
# sanitised kernel begins its lines with a time.
_COMPLAINT = re.compile(
    r"^(?:<\d>)?\[ *\d+\.\d+\] .*(?:"
    r"BUG: |WARNING: |ERROR: |KASAN|UBSAN|ODEBUG|INFO: (?:task|possible|trying|lockdep)"
    r"|DEBUG_LOCKS_WARN|unreferenced object|refcount_t|ref_tracker"
    r"|waiting for \S+ to become free|corruption|blocked for more than|Oops|unknown parameter"
    r").*$",
    re.MULTILINE,
)

# `RIP: 0033:aimd_cong_avoid+0x4/0x87 [tcp_aimd]`, in a kernel's print of its registers.
_PLACE = re.compile(r"RIP: [0-9a-f]+:(\w\S*\+0x[0-9a-f]+/0x[0-9a-f]+(?: \[\w+\])?)")


@dataclass(frozen=True)
class Culprit:
    """The cause that keeps a stuck guest busy: a phrase for the error, and a hint."""

    phrase: str
    hint: str = ""


def places(programs: Path, kernel: Path, more: Mapping[str, Path]) -> dict[str, Path]:
    """List the files and folders that a guest may read, by path in the sandbox.

    From the checkout that is only its runner: a guest must not see the results of others.
    """
    return {
        f"{CHECKOUT}/vm/guest": ROOT / "vm/guest",
        "/mnt/venv": Path(sys.prefix),
        "/mnt/bin": programs,
        "/mnt/linux": kernel,
        **more,
    }


def furnish(folder: Path, made: Sequence[str] = ()) -> Path:
    """Make the folder that a guest writes to, with the plan and the folders `made` in it.

    Returns: the guest's folder.
    """
    home = folder / GUEST_FOLDER
    for name in (".", "log", "pcap", *made):
        (home / name).mkdir(parents=True, exist_ok=True)
    shutil.copyfile(folder / PLAN, home / PLAN)
    if os.geteuid() == 0:  # then the guest runs as the user nobody (confinement.py)
        give(home, NOBODY, NOBODY)
    return home


@contextlib.contextmanager
def own_core() -> Iterator[list[str]]:
    """Reserve a processor, so that one guest's processes wake no others.

    Yields: the command prefix that pins a process to it. The prefix is empty, and the kernel's
        scheduler decides, if all processors are taken or the cache is not ours to write to.
    """
    for core in sorted(os.sched_getaffinity(0), reverse=True):
        with contextlib.ExitStack() as stack:
            try:
                (cache() / "cores").mkdir(parents=True, exist_ok=True)
                lock = stack.enter_context(open_lock(cache(), f"cores/{core}"))
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                continue
            yield ["taskset", "-c", str(core)]
            return
    yield []


def live(
    argv: Sequence[str],
    folder: Path,
    home: Path,
    on_progress: Callable[[Progress], None],
    *,
    stall_s: float,
    culprit: Callable[[int], Culprit],
    progress_file: str = PROGRESS_FILE,
) -> None:
    """Boot a guest on a run's folder and wait until it has powered off.

    Args:
        argv: the command that boots the guest, sandbox included.
        folder: the run's folder; the guest's artifacts are moved there in the end.
        home: the folder that the guest writes to, as furnish() made it; or `folder` itself.
        on_progress: called about ten times a second while the guest's time moves.
        stall_s: wall time without a report of progress after which the guest counts as stuck.
        culprit: finds the cause that keeps a stuck guest busy, from the process id of argv.
        progress_file: path in `home` of the file in which the guest reports progress.

    Raises: RunError if the guest failed, died, was killed or its clock stopped; DiskFullError.
    """

    def look() -> Progress | None:
        refuse_full_disk(folder)
        return read_progress(home, progress_file)

    (folder / "log").mkdir(exist_ok=True)
    try:
        with (
            open_run_file(folder, CONSOLE_LOG, new=True) as console,
            start_confined(argv, console.fileno(), console.fileno()) as process,
        ):
            _watch(process, look, on_progress, stall_s, culprit)
    finally:
        refused = remove_special_files(home)
        if home != folder:
            if (home / PLAN).is_file():  # the guest's copy of the plan
                (home / PLAN).unlink()
            refused += take_over(home, folder)
    refuse_full_disk(folder)
    if refused:
        raise RunError(
            f"the guest left {refused[0]} in the run's folder",
            "a guest may leave plain files and folders; everything else is removed",
        )
    _judge(process.returncode, folder)


def _watch(
    process: subprocess.Popen[bytes],
    look: Callable[[], Progress | None],
    on_progress: Callable[[Progress], None],
    stall_s: float,
    culprit: Callable[[int], Culprit],
) -> None:
    last: Progress | None = None
    moved = time.monotonic()
    while lives(process):
        progress = look()
        if progress != last and progress is not None:
            last, moved = progress, time.monotonic()
            on_progress(progress)
        elif time.monotonic() - moved > stall_s:
            found = culprit(process.pid)
            raise RunError(
                f"the guest's clock has not moved for {stall_s:.0f} s of wall time; {found.phrase}",
                found.hint,
            )


def read_progress(home: Path, name: str = PROGRESS_FILE) -> Progress | None:
    """Read the guest's last report of progress in its folder.

    Returns: None before the first report, or while one is being written.
    """
    try:
        last = read_run_file(home, name, _PROGRESS_BYTES).splitlines()[-1]
        return Progress.model_validate(read_json(last))
    except (OSError, ValueError, IndexError):
        return None


def read_console(folder: Path) -> list[str]:
    """Read the lines that the guest's kernel and runner printed."""
    return read_run_file(folder, CONSOLE_LOG).splitlines()


def _judge(returncode: int, folder: Path) -> None:
    """Raise RunError unless the guest finished its run without a fault."""
    text = read_run_file(folder, CONSOLE_LOG)
    console = text.splitlines()
    status = guest_status(folder)
    error = guest_error(folder)
    if error is not None:
        raise RunError(f"in the guest: {error}", _LACKING if _LACKED.search(error) else "")
    panic = next((line for line in console if "Kernel panic" in line), None)
    if panic:
        said = cut_line(panic[panic.index("Kernel panic") :].strip())
        place = fault_place(text)
        where = f" in {cut_line(place)}" if place else ""
        raise RunError(f"the guest kernel panicked{where}: {said}", f"see {CONSOLE_LOG}")
    if status is None:
        how = f"signal {-returncode}" if returncode < 0 else f"exit status {returncode}"
        said = cut_line(console[-1].strip()) if console else "nothing"
        raise RunError(f"the guest died ({how}); its last output: {said}", f"see {CONSOLE_LOG}")
    if status != "0":
        said = " / ".join(cut_line(line.strip()) for line in console[-3:])
        raise RunError(f"the guest's runner failed: {said}", f"see {CONSOLE_LOG}")
    if found := complaints(text):
        what = "cwnd set to 0 or less: " if _NO_WINDOW.search(found[0]) else ""
        raise RunError(
            f"the guest kernel complained: {what}{cut_line(found[0])}", f"see {CONSOLE_LOG}"
        )


def fault_place(console: str) -> str | None:
    """Find the function in which the guest's kernel last printed its registers.

    Returns: the function as the kernel writes it, followed by its module in brackets, if any.
    """
    found = _PLACE.findall(console)
    return found[-1] if found else None


def complaints(console: str) -> list[str]:
    """List the console's lines in which the guest's kernel reports a fault."""
    return _COMPLAINT.findall(console)


def _read_if_left(folder: Path, name: str) -> str | None:
    try:
        return read_run_file(folder, name, _WORDS_BYTES)
    except FileNotFoundError:
        return None


def guest_status(folder: Path) -> str | None:
    """Read the exit status of the guest's runner; None if the guest died before the runner ended.

    The guest's process may still abort while it powers off; the run has ended before that.
    """
    status = _read_if_left(folder, "exit-status")
    return status and status.strip()


def guest_error(folder: Path) -> str | None:
    """Read the error with which the guest's runner ended, if it did."""
    content = _read_if_left(folder, "guest-error.json")
    if content is None:
        return None
    try:
        return cut_line(str(read_json(content)["error"]))
    except (ValueError, TypeError, KeyError):  # a line that the runner does not write
        return repr(content[:200])
