"""A guest as a process of this machine: sandbox, life and verdict.

In the sandbox (bubblewrap) the run's folder is the only writable folder of the host. Every run sees
the same paths, so that the checkout's place on the host cannot reach the guest. A guest has no
capability of the host, even if root starts it; the files that it leaves in the run's folder are not
trusted (guest_files.py).
"""

import contextlib
import fcntl
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from twoway.backends.backend import Progress
from twoway.backends.guest_files import read_guest_file, remove_special_files
from twoway.contract.writing import refuse_full_disk
from twoway.errors import RunError
from twoway.paths import ROOT, cache

CONSOLE_LOG = "log/console.txt"
PROGRESS_FILE = "sockets/progress.json"
POLL_S = 0.1
# A guest whose clock has not moved for this long is stuck. A guest in real time reports nothing
# between set-up and the start of traffic, 22 s; user-mode Linux on a machine that is itself
# emulated, on half a processor, took more than 30 s to start Python.
STALL_S = 120.0

# The host's file system read-only, no network, no other process; /mnt holds the guest's folders.
_SANDBOX = """
    bwrap --die-with-parent --unshare-net --unshare-pid --unshare-ipc --unshare-uts
    --ro-bind / / --dev /dev --proc /proc --tmpfs /tmp
    --tmpfs /mnt --dir /mnt/upper --dir /mnt/root
    --clearenv --setenv TMPDIR /dev/shm --chdir /
"""
# Users' files, sockets of the host's daemons, the keys of a lab's worker.
_HIDDEN = ("/root", "/home", "/run", "/etc/twoway")
# Where a guest finds its programs (vm/guest/init.c), whatever the caller's PATH.
GUEST_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
RUNNER = ("/mnt/venv/bin/python", "-I", "/mnt/twoway/vm/guest/run.py")

# Lines in which a kernel or one of its checkers reports a fault, or that it ignores a module's
# parameter. The sanitised kernel begins its lines with a time.
_COMPLAINT = re.compile(
    r"^(?:<\d>)?\[ *\d+\.\d+\] .*(?:"
    r"BUG: |WARNING: |ERROR: |KASAN|UBSAN|ODEBUG|INFO: (?:task|possible|trying|lockdep)"
    r"|DEBUG_LOCKS_WARN|unreferenced object|refcount_t|ref_tracker"
    r"|waiting for \S+ to become free|corruption|blocked for more than|Oops|unknown parameter"
    r").*$",
    re.MULTILINE,
)


def sandbox(folder: Path, programs: Path, kernel: Path, more: Mapping[str, Path]) -> list[str]:
    """Build the command prefix that puts a guest into the sandbox.

    More of bwrap's options may follow it.

    Args:
        folder: the run's folder, /mnt/run in the sandbox.
        programs: the guest's programs, /mnt/bin in the sandbox.
        kernel: the guest's kernel, /mnt/linux in the sandbox.
        more: other files and folders of the host, by their paths in the sandbox.
    """
    readable = {
        "/mnt/twoway": ROOT,  # docs/decisions/0030
        "/mnt/venv": Path(sys.prefix),
        "/mnt/bin": programs,
        "/mnt/linux": kernel,
        **more,
    }
    words = [*_SANDBOX.split(), "--bind", str(folder), "/mnt/run"]
    for inside, outside in readable.items():
        words += ["--ro-bind", str(outside), inside]
    return words


def confinement() -> list[str]:
    """List the bwrap options that protect the host from a guest.

    The options protect the host even if root starts the guest. Without capabilities root may still
    write to /proc/sys, so that is mounted read-only.
    """
    words = ["--cap-drop", "ALL", "--ro-bind", "/proc/sys", "/proc/sys"]
    hidden = {Path(folder).resolve() for folder in _HIDDEN if Path(folder).is_dir()}
    for folder in sorted(hidden):
        words += ["--tmpfs", str(folder)]
    # The environment's Python may be a link to one in a hidden folder: show that one again.
    python = Path(sys.base_prefix).resolve()
    if not hidden.isdisjoint(python.parents):
        words += ["--ro-bind", str(python), str(python)]
    # Hide the checkout's own path: it is /mnt/twoway already, and overlayfs refuses a folder with
    # two names (docs/decisions/0030).
    return [*words, "--tmpfs", str(ROOT)]


@contextlib.contextmanager
def own_core() -> Iterator[list[str]]:
    """Reserve a processor, so that one guest's processes wake no others.

    Yields: the command prefix that pins a process to it; empty if all processors are taken, and
        the kernel's scheduler decides.
    """
    folder = cache() / "cores"
    folder.mkdir(parents=True, exist_ok=True)
    for core in sorted(os.sched_getaffinity(0), reverse=True):
        with (folder / str(core)).open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            yield ["taskset", "-c", str(core)]
            return
    yield []


def live(
    argv: Sequence[str],
    folder: Path,
    on_progress: Callable[[Progress], None],
    *,
    stall_s: float,
    culprit: Callable[[], str],
    progress_file: str = PROGRESS_FILE,
) -> None:
    """Boot a guest on a folder with a plan and wait until it has powered off.

    Args:
        argv: the command that boots the guest, sandbox included.
        folder: the run's folder; the guest writes its artifacts there.
        on_progress: called about ten times a second while the guest's time moves.
        stall_s: wall time without a report of progress after which the guest counts as stuck.
        culprit: returns a phrase for the error: what keeps a stuck guest busy.
        progress_file: path in the folder to which the guest reports progress.

    Raises: RunError if the guest failed, died, was killed or its clock stopped; DiskFullError.
    """

    def look() -> Progress | None:
        refuse_full_disk(folder)
        return read_progress(folder, progress_file)

    (folder / "log").mkdir(exist_ok=True)
    (folder / "pcap").mkdir(exist_ok=True)
    ended, lifeline = os.pipe()
    with (folder / CONSOLE_LOG).open("wb") as console:
        process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=console,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            pass_fds=(lifeline,),
        )
        os.close(lifeline)
        try:
            _watch(process, look, on_progress, stall_s, culprit)
        finally:
            process.kill()
            process.wait()
            # Every process of the sandbox holds the lifeline: reading ends when the last is gone.
            os.read(ended, 1)
            os.close(ended)
            removed = remove_special_files(folder)
    refuse_full_disk(folder)
    if removed:
        raise RunError(
            f"the guest left {removed[0]} in the run's folder",
            "a guest may leave plain files and folders; links, pipes and devices are removed",
        )
    _judge(process.returncode, folder)


def _watch(
    process: subprocess.Popen[bytes],
    look: Callable[[], Progress | None],
    on_progress: Callable[[Progress], None],
    stall_s: float,
    culprit: Callable[[], str],
) -> None:
    last: Progress | None = None
    moved = time.monotonic()
    while True:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(POLL_S)
            return
        progress = look()
        if progress != last and progress is not None:
            last, moved = progress, time.monotonic()
            on_progress(progress)
        elif time.monotonic() - moved > stall_s:
            raise RunError(
                f"the guest's clock has not moved for {stall_s:.0f} s of wall time; {culprit()}",
                "in virtual time a program that polls without sleeping never lets time pass",
            )


def read_progress(folder: Path, name: str = PROGRESS_FILE) -> Progress | None:
    """Read the guest's last report of progress.

    Returns: None before the first report, or while one is being written.
    """
    try:
        return Progress(**json.loads(read_guest_file(folder, name).splitlines()[-1]))
    except (OSError, ValueError, IndexError, TypeError):
        return None


def read_console(folder: Path) -> list[str]:
    """Read the lines that the guest's kernel and runner printed."""
    return read_guest_file(folder, CONSOLE_LOG).splitlines()


def _judge(returncode: int, folder: Path) -> None:
    """Raise RunError unless the guest finished its run without a fault."""
    text = read_guest_file(folder, CONSOLE_LOG)
    console = text.splitlines()
    status = _read_if_left(folder, "exit-status")
    error = guest_error(folder)
    if error is not None:
        raise RunError(f"in the guest: {error}")
    panic = next((line for line in console if "Kernel panic" in line), None)
    if panic:
        said = panic[panic.index("Kernel panic") :].strip()
        raise RunError(f"the guest kernel panicked: {said}", f"see {CONSOLE_LOG}")
    if status is None:
        how = f"signal {-returncode}" if returncode < 0 else f"exit status {returncode}"
        said = console[-1].strip() if console else "nothing"
        raise RunError(f"the guest died ({how}); its last words: {said}", f"see {CONSOLE_LOG}")
    if status.strip() != "0":
        said = " / ".join(line.strip() for line in console[-3:])
        raise RunError(f"the guest's runner failed: {said}", f"see {CONSOLE_LOG}")
    if found := complaints(text):
        raise RunError(f"the guest kernel complained: {found[0]}", f"see {CONSOLE_LOG}")


def complaints(console: str) -> list[str]:
    """List the console's lines in which the guest's kernel reports a fault."""
    return _COMPLAINT.findall(console)


def _read_if_left(folder: Path, name: str) -> str | None:
    try:
        return read_guest_file(folder, name)
    except FileNotFoundError:
        return None


def guest_error(folder: Path) -> str | None:
    """Read the error with which the guest's runner gave up, if it did."""
    content = _read_if_left(folder, "guest-error.json")
    if content is None:
        return None
    try:
        return str(json.loads(content)["error"])
    except (ValueError, TypeError, KeyError):  # not what the runner writes
        return repr(content[:200])
