"""The kernel modules on four processors, with every checker of races (`make test LAYER=smp`)."""

import json
import re
from pathlib import Path

import pytest
from channels import REFUSING
from support.guest.in_qemu import run_in_qemu
from support.guest.module_trials import (
    check_cases,
    check_stress,
    congestion_modules,
    kunit_cases,
    kunit_verdicts,
)

from twoway.backends.sandbox import CONSOLE_LOG, complaints
from twoway.contract.files import read_run_file
from twoway.errors import RunError
from twoway.guest.smp_kernel import Checkers, build_smp
from twoway.guest.stock_kernel import StockKernel, build_stock
from twoway.paths import KERNEL_MODULES
from twoway.progress import Steps

pytestmark = pytest.mark.smp

TESTS = KERNEL_MODULES / "tests/smp"
# Number of simultaneous processes for each qdisc.
FUZZERS = 4
FUZZ_REQUESTS = 500
# An hour of a channel whose operator changes it every ten seconds.
REQUESTS = 360
PATIENCE_S = 300
_OURS = re.compile(
    r"\[(?:sch_(?:dtm|medium|timetable)|tcp_(?:bbr3|fast|fixed|prague|tahoe)|planted)\]"
)
_KCSAN = re.compile(r"BUG: KCSAN: .*?={60,}", re.DOTALL)
# Races of the kernel's own that our modules call into: a reader of the clock tries again if it was
# being set (a seqcount), and a poller looks once more.
_BY_DESIGN = re.compile(r"data-race in .*\b(?:timekeeping_advance|pollwake)\b")


def kernel(checkers: Checkers) -> StockKernel:
    """Return the kernel with these checkers, built if it is not in the cache."""
    with Steps() as steps:
        return build_smp(checkers, steps)


@pytest.fixture(scope="module")
def smp() -> StockKernel:
    """Return the kernel with KASAN and lockdep."""
    return kernel("smp")


@pytest.fixture(scope="module")
def kcsan() -> StockKernel:
    """Return the kernel with KCSAN."""
    return kernel("kcsan")


def run_beside_races(stock: StockKernel, folder: Path, program: str, *arguments: str) -> list[str]:
    """Run a program on the kernel with KCSAN; return the complaints that involve our modules.

    Most reports are of the kernel's own races, without any of our functions.
    """
    try:
        run_in_qemu(stock, folder, TESTS / program, *arguments, patience_s=PATIENCE_S)
    except RunError as error:
        if "complained" not in str(error):
            raise
    console = read_run_file(folder, CONSOLE_LOG)
    found = [
        report
        for report in _KCSAN.findall(console)
        if _OURS.search(report) and not _BY_DESIGN.search(report.splitlines()[0])
    ]
    return found + [line for line in complaints(console) if "KCSAN" not in line]


# Tests of the checkers


def test_planted_races_are_noticed(smp: StockKernel, tmp_path: Path) -> None:
    """KASAN and lockdep report planted bugs that need two processors."""
    folder = tmp_path / "run"
    planted = "planted;lock_in_both_orders;free_too_early"
    with pytest.raises(RunError, match="complained"):
        run_in_qemu(smp, folder, TESTS / "suite.py", planted, patience_s=PATIENCE_S)
    console = read_run_file(folder, CONSOLE_LOG)
    assert "possible circular locking dependency" in console
    assert "KASAN: slab-use-after-free in free_too_early" in console


def test_a_planted_data_race_is_noticed(kcsan: StockKernel, tmp_path: Path) -> None:
    """KCSAN reports two processors that add to one number without a lock."""
    found = run_beside_races(kcsan, tmp_path / "run", "suite.py", "planted;count_unlocked")
    assert any("data-race in count_unlocked" in report for report in found)


# Tests of the modules


@pytest.fixture(scope="module")
def suite(smp: StockKernel, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of one boot that ran the whole suite."""
    folder = tmp_path_factory.mktemp("suite") / "run"
    loads = ";".join(["load_and_unload", *congestion_modules(smp.programs)])
    trials = ["kunit", loads, "cases"]
    trials += [f"fuzz;{qdisc};{FUZZ_REQUESTS}" for qdisc in REFUSING]
    run_in_qemu(smp, folder, TESTS / "suite.py", *trials, patience_s=PATIENCE_S)
    return folder


def test_module_arithmetic_holds_on_several_processors(suite: Path) -> None:
    """Every KUnit case holds in a kernel compiled for several processors."""
    verdicts = kunit_verdicts(suite / "kunit")
    assert [case for case in kunit_cases() if verdicts.get(case) != "ok"] == []


def test_every_extreme_request_has_an_answer(suite: Path) -> None:
    """Each value at the ends of a range and beyond has its expected answer, without a complaint."""
    check_cases(suite)


def test_broken_requests_at_once(suite: Path) -> None:
    """Four fuzzers of one qdisc, each in its own namespace, get an answer to each request."""
    tables = sorted(suite.glob("fuzz-*.tsv"))
    assert len(tables) == FUZZERS * len(REFUSING)
    for table in tables:
        rows = [line.split("\t") for line in table.read_text().splitlines()]
        assert sum(int(row[0]) for row in rows if row[2] == "done") == FUZZ_REQUESTS


def test_requests_and_traffic_at_once(smp: StockKernel, tmp_path: Path) -> None:
    """Simultaneous changes, deletions and traffic, an hour's requests, cause no complaint."""
    folder = tmp_path / "run"
    modules = congestion_modules(smp.programs)
    run_in_qemu(smp, folder, TESTS / "stress.py", str(REQUESTS), *modules, patience_s=PATIENCE_S)
    assert check_stress(folder) >= REQUESTS


def test_stress_without_data_races(kcsan: StockKernel, tmp_path: Path) -> None:
    """In the stress test no two processors access our modules' memory without a lock."""
    folder = tmp_path / "run"
    modules = congestion_modules(kcsan.programs)
    assert run_beside_races(kcsan, folder, "stress.py", str(REQUESTS), *modules) == []
    assert check_stress(folder) >= REQUESTS


# Tests of the clock


@pytest.fixture(scope="module")
def clock(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, int]]:
    """Return the results of real_clock.py's trials, on a kernel that nothing slows down."""
    folder = tmp_path_factory.mktemp("clock") / "run"
    with Steps() as steps:
        stock = build_stock(steps)
    run_in_qemu(stock, folder, TESTS / "real_clock.py", patience_s=PATIENCE_S)
    found: dict[str, dict[str, int]] = json.loads((folder / "clock.json").read_text())
    return found


@pytest.mark.parametrize(("trial", "frames"), [("backlog", 1000), ("about_the_end", 400)])
def test_frames_leave_when_their_slots_have_sent_them(
    clock: dict[str, dict[str, int]], trial: str, frames: int
) -> None:
    """No frame leaves early; the last is no later than the latest single timer."""
    found = clock[trial]
    assert found["frames"] == frames
    assert found["early"] == 0
    assert found["last_late_ns"] <= found["timer_ns"]


def test_a_frame_behind_a_late_one_is_served(clock: dict[str, dict[str, int]]) -> None:
    """If a parent holds a frame back, the frame behind it still gets its own service time."""
    found = clock["arrival_behind_a_late_one"]
    assert found["in_time"]
    assert found["served_ns"] >= found["least_ns"]


def test_what_was_sent_is_not_sent_again(clock: dict[str, dict[str, int]]) -> None:
    """Frames that only a parent still holds leave at its rate, whatever the slots are."""
    found = clock["change_behind_a_parent"]
    assert found["in_time"]
    assert found["gap_ns"] < (found["parent_ns"] + found["channel_ns"]) / 2
