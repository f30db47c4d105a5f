"""Run a program of the tests as root in the guest, by default in virtual time."""

from pathlib import Path

from twoway.backends import uml
from twoway.backends.sandbox import CHECKOUT, GUEST_FOLDER
from twoway.contract.plan import PLAN, Plan
from twoway.guest.cache import Guest
from twoway.paths import ROOT

MEMORY_MIB = 512
# For the whole program, which reports no progress: all cases of dtm take minutes on the sanitised
# kernel, a quarter of an hour beside other work.
PATIENCE_S = 1800.0


def run_in_guest(
    guest: Guest,
    folder: Path,
    program: Path,
    *arguments: str,
    virtual_time: bool = True,
    memory_mib: int = MEMORY_MIB,
    patience_s: float = PATIENCE_S,
) -> str:
    """Boot the guest, run a Python program of the checkout, power off.

    The program finds the kernel modules in /mnt/bin, the checkout in /mnt/twoway, and may write
    into /mnt/run, which has the files of `folder`. It need not report progress.

    Args:
        guest: the guest to boot.
        folder: the folder for its files; made if missing.
        program: a Python file below the project's root.
        arguments: passed to it.
        virtual_time: False for benchmarks, which need the host's clock.
        memory_mib: the guest's memory.
        patience_s: limit of wall time.

    Returns: the output of the program and the kernel on the console.
    Raises: RunError if it does not end with status 0.
    """
    give(folder)
    Plan(memory_mib=memory_mib).write(folder / PLAN)
    inside = Path(CHECKOUT) / program.resolve().relative_to(ROOT)
    runner = ["/mnt/venv/bin/python", "-I", str(inside), *arguments]
    uml.run(
        guest,
        folder,
        lambda _: None,
        runner=runner,
        virtual_time=virtual_time,
        readable={CHECKOUT: ROOT},
        stall_s=patience_s,
    )
    return (folder / "log/console.txt").read_text(errors="replace")


def give(folder: Path) -> None:
    """Move the files of a run's folder to the guest's place, and move them back at the end."""
    there = [*folder.iterdir()] if folder.exists() else []
    home = folder / GUEST_FOLDER
    home.mkdir(parents=True)
    for path in there:
        path.rename(home / path.name)
