"""Run a program of the tests as root in a machine with several processors, in the host's time."""

from pathlib import Path

from support.guest.in_guest import give
from twoway.backends import qemu
from twoway.backends.qemu import Accelerator, Machine
from twoway.backends.sandbox import CHECKOUT, CONSOLE_LOG
from twoway.contract.files import read_run_file
from twoway.contract.plan import PLAN, Plan
from twoway.guest.stock_kernel import StockKernel
from twoway.paths import ROOT

MEMORY_MIB = 512
MACHINE = Machine(
    readable={CHECKOUT: ROOT},
    processors=4,
    kernel=(
        # An emulated processor has the host's clock, but QEMU does not promise that to a kernel.
        "tsc=reliable",
        # The kernel may have to wait for the host: it reports a processor that spins for two
        # minutes.
        "watchdog_thresh=60",
        # The sanitised guest looks for leaks, which would take most of the time here.
        "kmemleak=off",
        # KCSAN waits at an access for one by another processor, so the host must run that processor
        # within this time.
        "kcsan.udelay_task=3000",
        "kcsan.udelay_interrupt=1000",
    ),
)


def run_in_qemu(
    kernel: StockKernel, folder: Path, program: Path, *arguments: str, patience_s: float
) -> str:
    """Boot a kernel on four processors, run a Python program of the checkout, power off.

    The program finds the kernel modules in /mnt/bin, the checkout in /mnt/twoway, and may write
    into /mnt/run, which has the files of `folder`.

    Args:
        kernel: the kernel to boot.
        folder: the folder for its files; made if missing.
        program: a Python file below the project's root.
        arguments: passed to it.
        patience_s: the longest time without a report of progress.

    Returns: the output of the program and the kernel on the console.
    Raises: RunError if it does not end with status 0, or if the kernel complained.
    """
    give(folder)
    Plan(memory_mib=MEMORY_MIB).write(folder / PLAN)
    inside = Path(CHECKOUT) / program.resolve().relative_to(ROOT)
    accelerator: Accelerator = "kvm" if qemu.best_accelerator(kernel) == "kvm" else "tcg"
    qemu.run(
        kernel,
        accelerator,
        folder,
        lambda _: None,
        runner=["/mnt/venv/bin/python", "-I", str(inside), *arguments],
        stall_s=patience_s,
        machine=MACHINE,
    )
    return read_run_file(folder, CONSOLE_LOG)
