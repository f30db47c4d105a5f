"""The default backend: a user-mode Linux guest in virtual time, inside a sandbox.

The guest's root file system is the host's, read-only, with an overlay in guest memory. The
sandbox (bubblewrap) makes that hold against guest root as well: the only writable host folder
that exists in it is the run's. It also gives every run the same paths, so that nothing of
where the checkout lies reaches the guest.
"""

import contextlib
import fcntl
import json
import os
import re
import shutil
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from twoway.backend import Progress
from twoway.build import Guest
from twoway.errors import RunError
from twoway.files import module_identity, sha256
from twoway.paths import ROOT, VM, cache
from twoway.plan import BOOT_NS

# A guest whose clock has not moved for this long is stuck: no step of a healthy run takes it.
STALL_S = 30.0
POLL_S = 0.1
_RANDOM_SEED = 1
# With less than this on the results' disk, whatever failed failed for want of space.
_LEAST_FREE_BYTES = 1 << 16
_CONSOLE_LOG = "log/console.txt"
_UMID = "twoway"
_MCONSOLE_MAGIC = 0xCAFEBABE

# What a kernel says when something is wrong, whichever of its checkers noticed. The sanitised one
# begins its own lines with a time.
_COMPLAINT = re.compile(
    r"^(?:<\d>)?\[ *\d+\.\d+\] .*(?:"
    r"BUG: |WARNING: |ERROR: |KASAN|UBSAN|ODEBUG|INFO: (?:task|possible|trying|lockdep)"
    r"|DEBUG_LOCKS_WARN|unreferenced object|refcount_t|ref_tracker"
    r"|waiting for \S+ to become free|corruption|blocked for more than|Oops"
    r").*$",
    re.MULTILINE,
)

# Everything of the host read-only, no network, no other process; /mnt is ours.
_SANDBOX = """
    bwrap --die-with-parent --unshare-net --unshare-pid --unshare-ipc --unshare-uts
    --ro-bind / / --dev /dev --proc /proc --tmpfs /tmp
    --tmpfs /mnt --dir /mnt/upper --dir /mnt/root
    --clearenv --setenv TMPDIR /dev/shm --chdir /
"""
_ROOT_FILE_SYSTEM = "root=/dev/root rootfstype=hostfs rootflags=/ ro init=/mnt/bin/init panic=-1"
RUNNER = ("/mnt/venv/bin/python", "-I", "/mnt/twoway/vm/guest/run.py")


@dataclass(frozen=True)
class Uml:
    """The backend (see backend.py)."""

    guest: Guest
    name: str = "uml"

    def run(self, folder: Path, on_progress: Callable[[Progress], None]) -> None:
        """See Backend."""
        run(self.guest, folder, on_progress)
        shutil.rmtree(folder / "uml")  # its control socket

    def description(self) -> dict[str, Any]:
        """See Backend."""
        return {
            "backend": self.name,
            "kernel": {"release": self.guest.release, "key": self.guest.key},
            "modules": {p.name: module_identity(p) for p in self._modules()},
        }

    def decisive(self, modules: Sequence[str]) -> dict[str, Any]:
        """See Backend."""
        programs = [p for p in self.guest.programs.iterdir() if p.suffix != ".ko"]
        return {
            "kernel": self.guest.kernel.parent.name,
            "programs": {p.name: sha256(p) for p in sorted(programs) if p.is_file()},
            "runner": sha256(VM / "guest/run.py"),
            "modules": {name: sha256(self.guest.programs / name) for name in modules},
        }

    def _modules(self) -> list[Path]:
        return sorted(self.guest.programs.glob("*.ko"))


def command(
    guest: Guest, folder: Path, *, runner: Sequence[str] = RUNNER, virtual_time: bool = True
) -> list[str]:
    """The command that boots the guest on a run's folder.

    Args:
        guest: kernel and programs to boot.
        folder: the run's folder, which holds plan.json.
        runner: what the guest runs, instead of carrying out the plan.
        virtual_time: False boots with the host's clock, for interactive use and benchmarks.
    """
    memory_mib = json.loads((folder / "plan.json").read_text())["memory_mib"]
    binds = {
        ("--bind", "/mnt/run"): folder,
        ("--ro-bind", "/mnt/twoway"): ROOT,
        ("--ro-bind", "/mnt/venv"): Path(sys.prefix),
        ("--ro-bind", "/mnt/bin"): guest.programs,
        ("--ro-bind", "/mnt/linux"): guest.kernel,
    }
    sandbox = [*_SANDBOX.split()]
    for (how, inside), outside in binds.items():
        sandbox += [how, str(outside), inside]
    # The checkout has one name only: overlayfs refuses a folder that it meets under two.
    sandbox += ["--tmpfs", str(ROOT)]
    kernel = f"/mnt/linux mem={memory_mib}M {_ROOT_FILE_SYSTEM} uml_dir=/mnt/run/uml umid={_UMID}"
    if guest.flavour == "sanitized":
        kernel += " panic_on_warn=1"
    if guest.has_seccomp:
        kernel += " seccomp=on"
    if virtual_time:
        kernel += " con=null con0=null,fd:1 time-travel=inf-cpu"
        kernel += f" time-travel-start={BOOT_NS} random-seed={_RANDOM_SEED}"
    else:
        kernel += " con=null con0=fd:0,fd:1 quiet"
    return [*sandbox, *kernel.split(), "--", *runner]


@contextlib.contextmanager
def own_core() -> Iterator[list[str]]:
    """Reserve a processor for one guest, so that its processes never wake another.

    Yields: the command prefix that pins to it; empty when all are taken (the scheduler decides).
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


def run(
    guest: Guest,
    folder: Path,
    on_progress: Callable[[Progress], None],
    *,
    runner: Sequence[str] = RUNNER,
    virtual_time: bool = True,
    stall_s: float = STALL_S,
) -> None:
    """Boot the guest on a folder with a plan and wait until it has powered off.

    Args:
        guest: kernel and programs to boot.
        folder: the run's folder; the guest writes its artifacts there.
        on_progress: called about ten times a second while virtual time moves.
        runner: as for command().
        virtual_time: as for command().
        stall_s: wall time without a report of progress after which the guest counts as stuck.

    Raises: RunError if the guest failed, died, was killed or its clock stopped, or if the
        sanitised kernel found a bug in itself.
    """
    (folder / "log").mkdir(exist_ok=True)
    (folder / "uml").mkdir(exist_ok=True)
    (folder / "pcap").mkdir(exist_ok=True)
    ended, lifeline = os.pipe()
    with own_core() as pinned, (folder / _CONSOLE_LOG).open("wb") as console:
        process = subprocess.Popen(
            [*pinned, *command(guest, folder, runner=runner, virtual_time=virtual_time)],
            stdin=subprocess.DEVNULL,
            stdout=console,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            pass_fds=(lifeline,),
        )
        os.close(lifeline)
        try:
            _watch(process, folder, on_progress, stall_s)
        finally:
            process.kill()
            process.wait()
            # Every process of the sandbox holds the lifeline: reading ends when the last is gone.
            os.read(ended, 1)
            os.close(ended)
    _judge(process.returncode, folder)
    if guest.flavour == "sanitized" and (found := complaints(folder)):
        raise RunError(f"the guest kernel complained: {found[0]}", f"see {_CONSOLE_LOG}")


def complaints(folder: Path) -> list[str]:
    """Lines of a run's console in which the sanitised kernel reports a bug."""
    return _COMPLAINT.findall((folder / _CONSOLE_LOG).read_text(errors="replace"))


def _watch(
    process: subprocess.Popen[bytes],
    folder: Path,
    on_progress: Callable[[Progress], None],
    stall_s: float,
) -> None:
    last: Progress | None = None
    moved = time.monotonic()
    while True:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(POLL_S)
            return
        progress = read_progress(folder)
        if progress != last and progress is not None:
            last, moved = progress, time.monotonic()
            on_progress(progress)
        elif time.monotonic() - moved > stall_s:
            culprit = _running_process(folder)
            raise RunError(
                f"the guest's clock has not moved for {stall_s:.0f} s of wall time; "
                f"running in the guest: {culprit}",
                "in virtual time a program that polls without sleeping never lets time pass",
            )


def read_progress(folder: Path) -> Progress | None:
    """What the guest last reported, or None before its first report."""
    try:
        return Progress(**json.loads((folder / "sockets/progress.json").read_text()))
    except (OSError, ValueError):
        return None


def _running_process(folder: Path) -> str:
    """Ask the guest kernel's console socket what it is running (sysrq-p)."""
    try:
        _mconsole(folder / "uml" / _UMID / "mconsole", "sysrq p")
    except OSError as error:
        return f"unknown, its kernel does not answer ({error.strerror})"
    time.sleep(1)  # the answer takes the way of kernel messages
    for line in reversed((folder / _CONSOLE_LOG).read_text(errors="replace").splitlines()):
        if "comm:" in line.lower():
            return line.split("omm:", 1)[1].split()[0]
    return "unknown"


def _mconsole(path: Path, request: str) -> None:
    """Send one request to user-mode Linux's management console (its protocol version 2)."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as console:
        console.settimeout(2)
        console.bind(b"\0twoway-%d" % os.getpid())
        data = request.encode()
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            # A path of constant length: socket addresses hold 108 bytes.
            console.connect(f"/proc/self/fd/{folder}/{path.name}")
        finally:
            os.close(folder)
        console.send(struct.pack("=IiI512s", _MCONSOLE_MAGIC, 2, len(data), data))


def _judge(returncode: int, folder: Path) -> None:
    """Tell a finished run from all the ways in which one does not finish."""
    console = (folder / _CONSOLE_LOG).read_text(errors="replace").splitlines()
    status = folder / "exit-status"
    finished = status.is_file() and status.read_text().strip() == "0"
    if not finished and shutil.disk_usage(folder).free < _LEAST_FREE_BYTES:
        raise RunError(f"{folder}: No space left on device")
    error = folder / "guest-error.json"
    if error.is_file():
        raise RunError(f"in the guest: {json.loads(error.read_text())['error']}")
    panic = next((line for line in console if "Kernel panic" in line), None)
    if panic:
        raise RunError(f"the guest kernel panicked: {panic.strip()}", f"see {_CONSOLE_LOG}")
    if not status.is_file():
        how = f"signal {-returncode}" if returncode < 0 else f"exit status {returncode}"
        said = console[-1].strip() if console else "nothing"
        raise RunError(f"the guest died ({how}); its last words: {said}", f"see {_CONSOLE_LOG}")
    if not finished:
        said = " / ".join(line.strip() for line in console[-3:])
        raise RunError(f"the guest's runner failed: {said}", f"see {_CONSOLE_LOG}")
