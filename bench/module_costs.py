"""Costs of our kernel modules and of the kernel's own: in the guest, and on four processors.

The guest is user-mode Linux with the host's clock: one processor, on which spinlocks are empty. The
four processors are QEMU's, with Debian's packaged kernel: spinlocks are taken, and nothing else
runs. If QEMU emulates them, its nanoseconds are not a processor's: the ratios then compare numbers
of instructions and of exits to the emulator.
"""

import json
import math
import shutil
import statistics
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from support.guest.in_guest import run_in_guest
from support.guest.in_qemu import run_in_qemu

from twoway.guest.cache import find_guest
from twoway.guest.stock_kernel import build_stock
from twoway.paths import ROOT
from twoway.progress import Steps

SOURCE = ROOT / "bench/modules"
# Share of run.py's packets for an emulated processor.
EMULATED_SHARE = 0.1
PATIENCE_S = 1800
# The yardstick: the qdisc that twoway used before it had dtm, for one link.
YARDSTICK = "netem rate 1"
PHASES = ("pass", "drop", "wait")


def show_module_costs() -> None:
    """Measure in both machines, and print a table for each."""
    with tempfile.TemporaryDirectory(prefix="twoway-bench-") as scratch:
        _show("user-mode Linux, one processor", _in_guest(Path(scratch) / "guest"))
    with tempfile.TemporaryDirectory(prefix="twoway-bench-") as scratch:
        _show("QEMU, four processors", _in_qemu(Path(scratch) / "qemu"))


def _in_guest(folder: Path) -> dict[str, list[float]]:
    guest = find_guest()
    if guest is None:
        raise SystemExit("bench: the guest is not built: run `make setup`")
    _build(folder, "-C", str(guest.kernel.parent), "ARCH=um")
    run_in_guest(
        guest,
        folder,
        SOURCE / "run.py",
        "/mnt/run/module",
        "1",
        virtual_time=False,
        patience_s=PATIENCE_S,
    )
    return _read(folder)


def _in_qemu(folder: Path) -> dict[str, list[float]]:
    with Steps() as steps:
        stock = build_stock(steps)
    headers = stock.modules.parent.parent / f"usr/src/linux-headers-{stock.release}"
    _build(folder, "-C", str(headers))
    arguments = ["/mnt/share/module", str(EMULATED_SHARE)]
    run_in_qemu(stock, folder, SOURCE / "run.py", *arguments, patience_s=PATIENCE_S)
    return _read(folder)


def _build(folder: Path, *make: str) -> None:
    """Build the module in a run's folder."""
    shutil.copytree(SOURCE, folder / "module")
    argv = ["make", "-s", *make, f"M={folder / 'module'}", "modules"]
    subprocess.run(argv, check=True, stdout=subprocess.DEVNULL)


def _read(folder: Path) -> dict[str, list[float]]:
    costs: dict[str, list[float]] = json.loads((folder / "bench.json").read_text())
    return costs


def _show(machine: str, costs: Mapping[str, Sequence[float]]) -> None:
    """Print ns per packet, and the ratio to one netem with a rate.

    "-" stands for a phase whose packets too often did not do what the phase demands, such as wait.
    """
    ns = {name: statistics.median(values) for name, values in costs.items()}
    print(f"\n{machine}: ns per packet, and times {YARDSTICK!r}")
    print(f"{'qdisc':<12} {'channels':>8} {''.join(f'{phase:>18}' for phase in PHASES)}")
    for name in [name.removeprefix("pass ") for name in ns if name.startswith("pass ")]:
        qdisc, channels = name.rsplit(" ", 1)
        cells = ""
        for phase in PHASES:
            cost = ns[f"{phase} {name}"]
            times = cost / ns[f"{phase} {YARDSTICK}"]
            cells += f"{'-':>18}" if math.isnan(cost) else f"{cost:11.1f} {times:6.2f}"
        print(f"{qdisc:<12} {channels:>8} {cells}")
    for name in [name for name in ns if name.startswith("ack ")]:
        print(f"{name:<30} {ns[name]:8.2f} ns", flush=True)
