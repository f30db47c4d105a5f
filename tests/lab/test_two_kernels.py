"""Runs on Debian's own kernel in QEMU, the second witness (`make test LAYER=lab`; minutes)."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.guest.in_qemu import run_in_qemu
from support.guest.module_trials import check_cases, check_stress, congestion_modules
from support.running import ROOT, SLOW, twoway, write_experiment

from twoway.backends import qemu
from twoway.backends.qemu import Machine
from twoway.backends.sandbox import CHECKOUT
from twoway.contract.plan import PLAN, Plan
from twoway.guest.stock_kernel import StockKernel, build_stock
from twoway.paths import KERNEL_MODULES
from twoway.progress import Steps

pytestmark = pytest.mark.lab

MODULE_TESTS = KERNEL_MODULES / "tests/smp"
PATIENCE_S = 300


@pytest.fixture(scope="module")
def stock() -> StockKernel:
    """Debian's kernel, fetched unless it is in the cache."""
    with Steps() as steps:
        return build_stock(steps)


def run(folder: Path, backend: str) -> dict[str, Any]:
    """Return the metrics of the slow experiment on a backend."""
    experiment = write_experiment(folder, SLOW)
    done = twoway("run", experiment, "--backend", backend, "--results", folder / backend, "--json")
    assert done.returncode == 0, done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    return document


@pytest.mark.usefixtures("guest", "stock")
def test_two_kernels_agree(tmp_path: Path) -> None:
    """A stock kernel with counted time measures the same as user-mode Linux in virtual time."""
    virtual, stock = run(tmp_path, "uml"), run(tmp_path, "qemu")
    assert virtual["clock_source"] == "virtual"
    assert stock["kernel"] != virtual["kernel"]
    # Queues are whole packets; 25 s may have one data packet of 80 ms more or less.
    exact = dict.fromkeys(("queue_peak.forward", "queue_peak.reverse", "drops_data.forward"), 0)
    shares = ("utilisation.forward", "utilisation.reverse", "efficiency.left")
    for name, error in {**exact, **dict.fromkeys(shares, 0.08 / 25)}.items():
        values = [d["metrics"][name]["value"] for d in (stock, virtual)]
        assert values[0] == pytest.approx(values[1], abs=error), name


@pytest.mark.usefixtures("stock")
def test_what_an_emulated_processor_can_tell(tmp_path: Path) -> None:
    """At a tenth of its rate kalampoukas-5.2 has its efficiency and queue on a stock kernel."""
    done = twoway(
        "run", "kalampoukas-5.2-tenth", "--backend", "qemu", "--results", tmp_path, "--json"
    )
    assert done.returncode == 0, done.stderr
    (point,) = json.loads(done.stdout)
    said = json.loads((Path(point["folder"]) / "verdicts.json").read_text())
    rows = {row["metric"]: row["verdict"] for row in said["predictions"]}
    for name in ("efficiency.left", "efficiency.right", "queue_peak_data.forward"):
        assert rows[name] == "pass"


def test_native_leaves_nothing(stock: StockKernel, tmp_path: Path) -> None:
    """On a stock kernel a run of `native` that ends, or is killed, leaves nothing behind."""
    Plan(memory_mib=600, experiment=yaml.safe_dump(SLOW)).write(tmp_path / PLAN)
    program = "/mnt/twoway/tests/support/lab/native_in_guest.py"
    paths = "PYTHONPATH=/mnt/twoway:/mnt/twoway/capture-analysis"
    runner = ["/usr/bin/env", paths, "/mnt/venv/bin/python", program]
    accelerator = qemu.best_accelerator(stock)
    machine = Machine(readable={CHECKOUT: ROOT})
    qemu.run(
        stock, accelerator, tmp_path, lambda _: None, runner=runner, stall_s=600, machine=machine
    )
    found = json.loads((tmp_path / "native.json").read_text())
    assert found["before"]["our modules"] == []
    assert [state for _, state in found["after"]] == [found["before"]] * 2


def test_requests_of_a_stock_kernel(stock: StockKernel, tmp_path: Path) -> None:
    """On 6.1 with four processors each request of dtm's cases has the same answer as on 6.12."""
    run_in_qemu(stock, tmp_path, MODULE_TESTS / "suite.py", "cases", patience_s=PATIENCE_S)
    check_cases(tmp_path)


def test_modules_on_a_stock_kernel(stock: StockKernel, tmp_path: Path) -> None:
    """On 6.1 all modules load, carry traffic while channels change and end, and unload."""
    modules = congestion_modules(stock.programs)
    names = {told.split("/")[0] for told in modules}
    assert names == {"tcp_bbr3", "tcp_fast", "tcp_fixed", "tcp_prague", "tcp_tahoe"}
    run_in_qemu(stock, tmp_path, MODULE_TESTS / "stress.py", "0", *modules, patience_s=PATIENCE_S)
    assert check_stress(tmp_path) > 0
