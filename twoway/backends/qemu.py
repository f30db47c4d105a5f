"""The backend `qemu`: a distribution's own kernel.

Unlike user-mode Linux in virtual time, the kernel's work takes time on the guest's clock.

The guest has one virtual processor, and the same sandbox, root file system and programs as
user-mode Linux. With KVM the guest's clock is the host's. Without, QEMU counts instructions: each
takes the guest a nanosecond, and idle time is skipped, so the host's load changes nothing and
waiting costs no time.
"""

import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cache as once
from functools import partial
from pathlib import Path
from typing import Any, Literal, get_args

from twoway.backends.backend import Kind, Progress, refuse_what_uml_has
from twoway.backends.sandbox import (
    CONSOLE_LOG,
    RUNNER,
    STALL_S,
    Culprit,
    furnish,
    live,
    own_core,
    places,
)
from twoway.confinement import confined_command
from twoway.contract.files import sha256
from twoway.contract.plan import PLAN, Plan, read_plan
from twoway.contract.writing import write_json
from twoway.errors import DiskFullError, RunError, UsageError
from twoway.guest.programs import RUNNER_SOURCES
from twoway.guest.stock_kernel import StockKernel, build_stock, find_stock, initramfs
from twoway.manifest import Kernel, Module, Platform
from twoway.messages import say
from twoway.paths import cache
from twoway.progress import Steps

# kvm: the host's processor; icount: emulation that counts instructions as time; tcg: emulation in
# the host's time.
Accelerator = Literal["kvm", "icount", "tcg"]
ACCELERATORS: tuple[Accelerator, ...] = get_args(Accelerator)
PROGRAM = "qemu-system-x86_64"
# Memory besides the plan's, MiB: for a stock kernel, and for the run's artifacts.
_KERNEL_MIB, _ARTIFACTS_MIB = 512, 2048
# QEMU's own memory besides its guest's, MiB: up to a gigabyte is translated code. Size of /dev/shm,
# MiB.
_OWN_MIB, _SHM_MIB = 3072, 64
_KVM = Path("/dev/kvm")
# KVM boots this kernel within two seconds, or not at all.
_KVM_BOOT_S = 20.0
_ACCELERATION: dict[Accelerator, str] = {
    "kvm": "-accel kvm -cpu host",
    "icount": "-accel tcg -icount shift=0,sleep=off -cpu max,-erms,-fsrm,-rdrand,-rdseed",
    "tcg": "-accel tcg,thread=multi -cpu max,-erms,-fsrm",
}
# All devices apart from processors and memory: two serial ports and the shared folders.
_MACHINE = """
    -machine q35 -nodefaults -no-user-config -display none -no-reboot
    -rtc base=2000-01-01T00:00:00
    -chardev stdio,id=console,signal=off -serial chardev:console
    -chardev file,id=progress,path=/mnt/run/qemu/progress -serial chardev:progress
    -fsdev local,id=root,path=/,security_model=none,readonly=on,multidevs=remap
    -device virtio-9p-pci,fsdev=root,mount_tag=root
    -fsdev local,id=run,path=/mnt/run,security_model=none
    -device virtio-9p-pci,fsdev=run,mount_tag=run
    -kernel /mnt/linux -initrd /mnt/run/qemu/initrd
"""
# IPv6 is off until an experiment uses it: its neighbour discovery sends packets by itself. The
# table of connections is small, because a sample of TCP_INFO walks all of it. The console shows
# warnings and worse, because sandbox.complaints() looks for them there. An emulated processor on
# a busy machine misses ticks by which the kernel tests its timer: that test is left out.
_KERNEL = (
    "console=ttyS0 quiet loglevel=5 panic=-1 no_timer_check ipv6.disable_ipv6=1 thash_entries=256 "
    "share=run"
)


@dataclass(frozen=True)
class Qemu:
    """The backend `qemu`.

    Attributes:
        stock: kernel, modules and programs.
        accelerator: what executes the guest's instructions.
        name: the value of `--backend`.
        in_kernel: see Backend.
    """

    stock: StockKernel
    accelerator: Accelerator
    name: str = "qemu"
    in_kernel: bool = False

    def run(self, folder: Path, on_progress: Callable[[Progress], None]) -> None:
        """Boot the stock kernel on a run's folder and carry out plan.json."""
        refuse_what_uml_has(read_plan(folder), self.name)
        run(self.stock, self.accelerator, folder, on_progress)

    def description(self) -> Platform:
        """Describe the stock kernel, QEMU with its accelerator, and our modules."""
        stock = self.stock
        return Platform(
            backend=self.name,
            kernel=Kernel(release=stock.release, key=stock.key, package=stock.package),
            clock_source="instructions" if self.accelerator == "icount" else "host",
            qemu=f"{version()}, {self.accelerator}",
            modules={p.name: Module.from_file(p) for p in sorted(stock.programs.glob("*.ko"))},
        )

    def identify(self, modules: Sequence[str]) -> dict[str, Any]:
        """Identify kernel, QEMU, accelerator, programs and modules in use."""
        programs = self.stock.programs
        return {
            "kernel": self.stock.package,
            "accelerator": self.accelerator,
            "qemu": version(),
            "key": self.stock.key,
            "runner": {p.name: sha256(p) for p in RUNNER_SOURCES},
            "modules": {name: sha256(programs / name) for name in modules},
        }


@dataclass(frozen=True)
class Machine:
    """A guest's processors, memory and kernel arguments.

    Attributes:
        processors: their number. Several are threads, which run on any of the host's processors.
        kernel: more words for the kernel's command line.
        readable: more files and folders of the host that it may read, by their paths in the
            sandbox.
    """

    processors: int = 1
    kernel: Sequence[str] = ()
    readable: Mapping[str, Path] = field(default_factory=dict)


_DEFAULT = Machine()


@once
def version() -> str:
    """Return the first line of `qemu-system-x86_64 --version`.

    Raises: UsageError if QEMU is not installed.
    """
    try:
        done = subprocess.run([PROGRAM, "--version"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise UsageError(f"{PROGRAM}: {error}", "`vm/install-packages qemu` installs it") from error
    return done.stdout.splitlines()[0]


def command(
    stock: StockKernel,
    accelerator: Accelerator,
    home: Path,
    runner: Sequence[str],
    machine: Machine = _DEFAULT,
) -> list[str]:
    """Build the command that boots the guest on its folder, as furnish() made it."""
    memory_mib = read_plan(home).memory_mib + _KERNEL_MIB + _ARTIFACTS_MIB
    packaged = {"/mnt/modules": stock.modules, "/mnt/boot": stock.image.parent}
    devices = [_KVM] if accelerator == "kvm" else []
    sandboxed = confined_command(
        places(stock.programs, stock.image, {**packaged, **machine.readable}),
        home,
        devices=devices,
        own_mib=memory_mib + _OWN_MIB,
        shm_mib=_SHM_MIB,
    )
    return [
        *sandboxed,
        PROGRAM,
        *f"{_MACHINE} -smp {machine.processors} -m {memory_mib}".split(),
        *_ACCELERATION[accelerator].split(),
        "-append",
        " ".join([_KERNEL, *machine.kernel, "--", *runner]),
    ]


def run(
    stock: StockKernel,
    accelerator: Accelerator,
    folder: Path,
    on_progress: Callable[[Progress], None],
    *,
    runner: Sequence[str] = (*RUNNER, "--real-time"),
    stall_s: float = STALL_S,
    machine: Machine = _DEFAULT,
) -> None:
    """Boot the guest on a folder with a plan; wait until it powers off.

    A guest that reports no progress for `stall_s` of wall time counts as stuck. A guest with one
    processor has one of the host's for itself.

    Raises: RunError if the guest failed, died, was killed or is stuck.
    """
    version()
    home = furnish(folder, ("qemu",))
    (home / "qemu/initrd").write_bytes(initramfs(stock))
    with ExitStack() as stack:
        pinned = stack.enter_context(own_core()) if machine.processors == 1 else []
        boot = [*pinned, *command(stock, accelerator, home, runner, machine)]
        live(
            boot,
            folder,
            home,
            on_progress,
            stall_s=stall_s,
            culprit=lambda _: Culprit(f"its last output is in {CONSOLE_LOG}"),
            progress_file="qemu/progress",
        )
    shutil.rmtree(folder / "qemu")


def best_accelerator(stock: StockKernel) -> Accelerator:
    """Choose KVM if it boots this kernel, else counted instructions.

    The first call on a host tries KVM and keeps the result in the cache.
    """
    verdicts = cache() / "stock/kvm.json"
    tried = f"{os.uname().release}, {version()}, {stock.package}"
    try:
        known: dict[str, str] = json.loads(verdicts.read_text())
    except (OSError, ValueError):
        known = {}
    if tried not in known:
        known[tried] = why_not_kvm(stock)
        verdicts.parent.mkdir(parents=True, exist_ok=True)
        write_json(verdicts, known)
        if known[tried]:
            say(f"KVM does not work here: {known[tried]}; QEMU emulates and counts instructions")
    return "icount" if known[tried] else "kvm"


def why_not_kvm(stock: StockKernel) -> str:
    """Boot a kernel under KVM and return why it failed; empty if it booted."""
    if not os.access(_KVM, os.R_OK | os.W_OK):
        return f"{_KVM} may not be opened" if _KVM.exists() else f"{_KVM} is not there"
    with tempfile.TemporaryDirectory(prefix="twoway-kvm-") as scratch:
        folder = Path(scratch)
        Plan(memory_mib=0).write(folder / PLAN)
        began = time.monotonic()
        try:
            run(stock, "kvm", folder, lambda _: None, runner=["/bin/true"], stall_s=_KVM_BOOT_S)
        except DiskFullError:
            raise
        except RunError as error:
            if time.monotonic() - began >= _KVM_BOOT_S:
                return f"{stock.package.split()[0]} has not booted in {_KVM_BOOT_S:.0f} s"
            return str(error)
    return ""


def make_qemu(accelerator: Accelerator | None = None) -> Qemu:
    """Make the backend; fetch its kernel if need be.

    Args:
        accelerator: executes the guest; by default KVM if that works, else counted instructions.
    """
    stock = find_stock()
    if stock is None:
        with Steps() as steps:
            stock = build_stock(steps)
    return Qemu(stock, accelerator or best_accelerator(stock))


KINDS = (
    Kind("qemu", "a distribution's own kernel, with KVM if it works, else emulated", make_qemu),
    *(Kind(f"qemu-{each}", "", partial(make_qemu, each)) for each in ACCELERATORS),
)
