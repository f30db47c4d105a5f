"""The default backend: user-mode Linux in virtual time, in a sandbox.

The guest's root file system is the host's, read-only, with an overlay in guest memory; the sandbox
makes it read-only even for root in the guest.
"""

import contextlib
import errno
import os
import shutil
import signal
import socket
import stat
import struct
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from twoway.backends.backend import Kind, Progress
from twoway.backends.own_modules import own_modules
from twoway.backends.sandbox import (
    GUEST_FOLDER,
    RUNNER,
    STALL_S,
    Culprit,
    fault_place,
    furnish,
    live,
    own_core,
    places,
    read_console,
)
from twoway.confinement import OWN_MIB, confined_command, refusal
from twoway.contract.files import open_run_folder, sha256
from twoway.contract.plan import read_plan
from twoway.errors import RunError
from twoway.guest.cache import Guest, built_guest
from twoway.guest.programs import RUNNER_SOURCES
from twoway.guest.runner import compiled_runner
from twoway.guest.source import kernel_named
from twoway.manifest import Kernel, Module, Platform

# Room in /dev/shm besides the guest's memory, MiB.
_SHM_RESERVE_MIB = 16
# KASAN's map of an address space of 128 TiB, one byte for 8; almost none of it is touched.
_SHADOW_MIB = 16 << 20
_UMID = "twoway"
_IDLE = "swapper"  # the kernel's own task, which runs when no process does
_KERNEL = Path("/mnt/linux")  # in the sandbox
_COMPILED = "/mnt/runner.pyc"
_MCONSOLE_MAGIC = 0xCAFEBABE
# Time for the kernel to answer on its console.
_ANSWER_S = 1.0
# The length to which the kernel cuts a program's file name.
_COMM_CHARACTERS = 15

_ROOT_FILE_SYSTEM = "root=/dev/root rootfstype=hostfs ro init=/mnt/bin/init panic=-1"
# The paths on the host of the guest's / and of the kernel's control socket.
_IN_SANDBOX = "rootflags=/ uml_dir=/mnt/run/uml"
# A container has no place for each run's folder: the guest's /mnt/run is its /mnt/host/mnt/run,
# which is a link to the working directory.
_IN_CONTAINER = "rootflags=/../.. hostfs=/mnt/host uml_dir=/proc/self/cwd/uml"


@dataclass(frozen=True)
class Uml:
    """The backend `uml`.

    Attributes:
        guest: kernel and programs.
        name: the value of `--backend`.
        in_kernel: see Backend.
    """

    guest: Guest
    name: str = "uml"
    in_kernel: bool = True

    def run(self, folder: Path, on_progress: Callable[[Progress], None]) -> None:
        """Boot the guest on a run's folder and carry out plan.json."""
        run(self.guest, folder, on_progress)
        shutil.rmtree(folder / "uml", ignore_errors=True)  # the kernel's control socket was there

    def description(self) -> Platform:
        """Describe the guest's kernel and modules."""
        return Platform(
            backend=self.name,
            clock_source="virtual",
            kernel=Kernel(release=self.guest.release, key=self.guest.key),
            modules={p.name: Module.from_file(p) for p in self._modules()},
            sandbox="container" if refusal() else "bubblewrap",
        )

    def identify(self, modules: Sequence[str]) -> dict[str, Any]:
        """Identify the guest's kernel, programs, runner and the modules in use.

        tc opens the part of a queue discipline only if that discipline's module is in use.
        """
        unused = {p.stem for p in self._modules() if p.name not in modules}
        programs = [p for p in sorted(self.guest.programs.iterdir()) if p.suffix != ".ko"]
        programs = [p for p in programs if f"sch{p.stem.removeprefix('q')}" not in unused]
        return {
            "kernel": sha256(self.guest.kernel),
            "programs": {p.name: sha256(p) for p in programs if p.is_file()},
            "runner": {p.name: sha256(p) for p in RUNNER_SOURCES},
            "modules": {name: sha256(self.guest.programs / name) for name in modules},
        }

    def _modules(self) -> list[Path]:
        return sorted(self.guest.programs.glob("*.ko"))


def command(
    guest: Guest,
    home: Path,
    *,
    runner: Sequence[str] = RUNNER,
    virtual_time: bool = True,
    ipv6: bool = False,
    readable: Mapping[str, Path] = MappingProxyType({}),
) -> list[str]:
    """Build the command that boots the guest on its folder.

    Args:
        guest: kernel and programs to boot.
        home: the guest's folder, as furnish() made it.
        runner: the program that the guest runs instead of carrying out the plan.
        virtual_time: False boots with the host's clock, for interactive use and benchmarks.
        ipv6: True gives each interface of a new namespace an IPv6 address.
        readable: more files and folders of the host that the guest may read, by their paths in the
            sandbox.
    """
    plan = read_plan(home)
    kernel = f"{_KERNEL} mem={plan.memory_mib}M {_ROOT_FILE_SYSTEM}"
    kernel += f" {_IN_CONTAINER if refusal() else _IN_SANDBOX} umid={_UMID}"
    if not ipv6:
        kernel += " ipv6.disable_ipv6=1"
    if guest.flavour == "sanitized":
        kernel += " panic_on_warn=1"
    if guest.has_seccomp:
        kernel += " seccomp=on"
    if virtual_time:
        kernel += (
            " con=null con0=null,fd:1 printk.time=1 time-travel=inf-cpu time-travel-cost=syscall"
        )
        kernel += f" time-travel-start={plan.clock.boot_ns} random-seed={plan.seed}"
    else:
        kernel += " con=null con0=fd:0,fd:1 quiet"
    if runner is RUNNER and not refusal():  # a container shows no file at another path
        readable = {_COMPILED: compiled_runner(), **readable}
        runner = (*RUNNER[:-1], _COMPILED)
    sandboxed = confined_command(
        places(guest.programs, guest.kernel, {**own_modules(guest, plan.own_modules), **readable}),
        home,
        shm_mib=plan.memory_mib + _SHM_RESERVE_MIB,
        own_mib=(_SHADOW_MIB if guest.flavour == "sanitized" else 0) + OWN_MIB,
    )
    return [*sandboxed, *_same_addresses(), *kernel.split(), "--", *runner]


@cache
def _same_addresses() -> list[str]:
    """Return the command prefix that gives each guest the same addresses, and so the same memory.

    The host draws the address of a process's heap, and user-mode Linux adds the gap before it, of
    up to 1 GiB, to its memory, with 16 MiB to describe it. Linux has switched that off itself since
    6.13. Empty if the host refuses, as Docker does.
    """
    words = ["setarch", "--addr-no-randomize"]
    tried = subprocess.run([*words, "true"], capture_output=True, check=False)
    return words if tried.returncode == 0 else []


def run(
    guest: Guest,
    folder: Path,
    on_progress: Callable[[Progress], None],
    *,
    runner: Sequence[str] = RUNNER,
    virtual_time: bool = True,
    ipv6: bool = False,
    readable: Mapping[str, Path] = MappingProxyType({}),
    stall_s: float = STALL_S,
) -> None:
    """Boot the guest on a folder with a plan; wait until it powers off.

    Keywords are those of command(). A guest that reports no progress for `stall_s` of wall time
    counts as stuck; `on_progress` is called about ten times a second.

    Raises: RunError if the guest failed, died, was killed or its clock stopped, or if its kernel
        found a fault.
    """
    home = furnish(folder, ("uml",))
    with own_core() as pinned:
        boot = command(
            guest, home, runner=runner, virtual_time=virtual_time, ipv6=ipv6, readable=readable
        )
        live(
            [*pinned, *boot],
            folder,
            home,
            _of_one_boot(on_progress) if virtual_time else on_progress,
            stall_s=stall_s,
            culprit=lambda pid: _culprit(folder, pid),
        )


def _of_one_boot(on_progress: Callable[[Progress], None]) -> Callable[[Progress], None]:
    """Return a function that passes progress on, and raises RunError after a second boot.

    A kernel in user mode that is asked to reboot starts itself again, and carries out its plan from
    the beginning.
    """
    latest_ns = 0

    def pass_on(progress: Progress) -> None:
        nonlocal latest_ns
        if progress.time_ns < latest_ns:
            raise RunError(
                "the guest has started again, and its run from the beginning",
                "a program or module reboots it; a program may only end itself",
            )
        latest_ns = progress.time_ns
        on_progress(progress)

    return pass_on


def _culprit(folder: Path, sandbox: int) -> Culprit:
    """Find the cause that keeps a stuck guest busy: a program, or a module of its kernel."""
    running = _running_process(folder)
    with contextlib.suppress(OSError):  # the process has ended meanwhile
        # the kernel prints its registers, and panics
        os.kill(_kernel_process(sandbox), signal.SIGSEGV)
        time.sleep(_ANSWER_S)
    place = fault_place("\n".join(read_console(folder)))
    if place and place.endswith("]"):
        hint = "look for an endless loop in that module"
        return Culprit(f"{running}; its kernel is in {place}", hint)
    hint = "in virtual time a program that polls without sleeping never lets time pass"
    return Culprit(running, hint)


def _kernel_process(sandbox: int) -> int:
    """Find the guest's kernel among a process and its descendants."""
    family = [sandbox]
    for pid in family:
        process = Path(f"/proc/{pid}")
        if (process / "comm").read_text().strip() == _KERNEL.name:
            return pid
        family += [int(child) for child in (process / f"task/{pid}/children").read_text().split()]
    raise ProcessLookupError(_KERNEL)


def _running_process(folder: Path) -> str:
    """Ask the guest kernel's console socket what it is running (sysrq-p)."""
    try:
        _mconsole(folder, "sysrq p")
    except OSError as error:
        return f"its kernel does not answer ({error.strerror})"
    time.sleep(_ANSWER_S)
    for line in reversed(read_console(folder)):
        if "comm:" in line.lower():
            command = line.split("omm:", 1)[1].split()[0]
            return f"running in the guest: {_with_program(command, folder)}"
    return "its kernel does not name the running process"


def _with_program(command: str, folder: Path) -> str:
    """Add to a process's name the experiment's programs that may have started it."""
    if command == _IDLE:
        return "no program"
    programs = read_plan(folder).user_programs
    names = [p.name for p in programs if Path(p.run[0]).name[:_COMM_CHARACTERS] == command]
    return f"{command} (programs: {', '.join(names)})" if names else command


def _mconsole(folder: Path, request: str) -> None:
    """Send a request to user-mode Linux's management console (version 2)."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as console:
        console.settimeout(2)
        console.bind(b"\0twoway-%d" % os.getpid())
        data = request.encode()
        with open_run_folder(folder / GUEST_FOLDER, f"uml/{_UMID}") as opened:
            found = os.open("mconsole", os.O_PATH | os.O_NOFOLLOW, dir_fd=opened)
        try:
            # The guest may have put a link to another socket of the machine there.
            if not stat.S_ISSOCK(os.fstat(found).st_mode):
                raise OSError(errno.ENOTSOCK, os.strerror(errno.ENOTSOCK))
            console.connect(f"/proc/self/fd/{found}")
        finally:
            os.close(found)
        console.send(struct.pack("=IiI512s", _MCONSOLE_MAGIC, 2, len(data), data))


KINDS = (
    Kind(
        "uml",
        "virtual time (default)",
        lambda: Uml(built_guest()),
        lambda kernel: Uml(built_guest(kernel_named(kernel))),
    ),
)
