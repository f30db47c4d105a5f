"""The kernel modules in the sanitised guest: any complaint of its kernel is a failure."""

import copy
import re
import shutil
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml
from channels import REFUSING
from support.guest.fast_flows import GAMMA
from support.guest.in_guest import run_in_guest
from support.guest.module_trials import (
    check_fuzzed,
    congestion_modules,
    kunit_cases,
    kunit_verdicts,
)
from support.running import ROOT
from support.sharing import once

from twoway.backends.sandbox import CONSOLE_LOG, complaints
from twoway.backends.uml import Uml
from twoway.commands.options import all_ids
from twoway.contract.files import read_run_file
from twoway.description.point import find_experiment, find_source
from twoway.errors import RunError
from twoway.guest.cache import Guest
from twoway.paths import KERNEL_MODULES
from twoway.runs.points import load_point
from twoway.runs.run import run_experiment

pytestmark = pytest.mark.sanitized

TESTS = KERNEL_MODULES / "tests"
REQUESTS = 100_000
# Virtual seconds of an experiment: enough for the first losses, reallocations and bunches of ACKs.
SHORT_S = 3.0
# An experiment of this number of flows lasts a tenth of it: the 40 of dctcp-racks send a
# million packets a second.
MANY_FLOWS = 20
# The longest run of a test program, iperf3's 12 s, plus a margin.
PROGRAMS_S = 13.0
WARM_UP_S = 1.0


@pytest.fixture(scope="session", autouse=True)
def _checkers(guest: Guest) -> None:
    if guest.flavour != "sanitized":
        pytest.fail("these need --guest sanitized, as `make test LAYER=sanitized` gives it")


def endure(guest: Guest, folder: Path, trial: str, *arguments: str) -> str:
    """Run a trial of endurance.py; return its output and the kernel's."""
    return run_in_guest(guest, folder, TESTS / "endurance.py", trial, *arguments)


# Tests of the checkers


@pytest.mark.parametrize(
    ("bug", "report"),
    [
        ("out_of_bounds", "KASAN: slab-out-of-bounds"),
        ("use_after_free", "KASAN: slab-use-after-free"),
        ("stack_out_of_bounds", "KASAN: stack-out-of-bounds"),
        ("array_index", "UBSAN: array-index-out-of-bounds"),
        ("shift", "UBSAN: shift-out-of-bounds"),
        ("misaligned", "UBSAN: misaligned-access"),
        ("leak", "unreferenced object"),
        ("lock_order", "possible circular locking dependency"),
        ("sleep_in_atomic", "sleeping function called from invalid context"),
        ("unlocked_rcu", "suspicious RCU usage"),
        ("free_active_timer", "ODEBUG: free active"),
        ("list_corruption", "list_add double add"),
    ],
)
def test_a_planted_bug_is_noticed(guest: Guest, tmp_path: Path, bug: str, report: str) -> None:
    """The sanitised kernel reports each planted bug of the kinds that other tests must not have."""
    with pytest.raises(RunError):
        endure(guest, tmp_path / "run", "planted", bug)
    assert report in (tmp_path / "run/log/console.txt").read_text(errors="replace")


# Tests of the modules


@pytest.fixture(scope="session")
def kunit(guest: Guest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return each case's verdict: "ok" or the kernel's words on its failure."""
    folder = once(tmp_path_factory, "kunit", lambda folder: endure(guest, folder / "run", "kunit"))
    return kunit_verdicts(folder / "run/kunit")


@pytest.mark.parametrize("case", kunit_cases())
def test_module_arithmetic_holds_in_kunit(kunit: dict[str, str], case: str) -> None:
    """Each KUnit case of the modules' arithmetic holds in the kernel that it is built for."""
    assert kunit.get(case, "did not run") == "ok"


@pytest.mark.long
def test_modules_come_and_go(guest: Guest, tmp_path: Path) -> None:
    """A hundred loads and unloads of each module leak no memory."""
    endure(guest, tmp_path / "run", "load_and_unload", *congestion_modules(guest.programs))


@pytest.mark.long
def test_queues_and_sockets_end_under_traffic(guest: Guest, tmp_path: Path) -> None:
    """Channels, devices, hosts and sockets are deleted in use; used modules stay; nothing leaks."""
    endure(guest, tmp_path / "run", "traffic", *congestion_modules(guest.programs))


@pytest.mark.long
def test_any_allocation_may_fail(guest: Guest, tmp_path: Path) -> None:
    """Each allocation of a load, or of a channel's request, may fail, and everything else works."""
    folder = tmp_path / "run"
    try:
        endure(guest, folder, "out_of_memory", *congestion_modules(guest.programs))
    except RunError as error:
        if "complained" not in str(error):
            raise
    # The kernel itself warns if it has no memory to describe a module's tracepoint.
    core = "kernel/trace/trace_events.c"
    assert [
        line for line in complaints(read_run_file(folder, CONSOLE_LOG)) if core not in line
    ] == []


def test_fast_traces_its_updates(guest: Guest, tmp_path: Path) -> None:
    """fast:fast_update records each update of a flow, and its numbers satisfy FAST's law.

    Each w follows from the w before and the round trips beside it: within three digits for a
    settled flow, and before that to the packet by which an increase may fall short.
    """
    folder = tmp_path / "run"
    run_in_guest(guest, folder, ROOT / "tests/support/guest/fast_trace.py")
    assert "fast_update" not in (folder / "off.txt").read_text()
    lines = re.findall(
        r"fast_update: src=10.0.0.1:\d+ dest=10.0.3.2:5001 (.*)", (folder / "on.txt").read_text()
    )
    rows = [{k: int(v) for k, v in re.findall(r"(\w+)=(\d+)", line)} for line in lines]
    # Round trips are 41 to 70 ms.
    assert 3000 / 70 < len(rows) < 3000 / 41
    for at, (before, row) in enumerate(pairwise(rows)):
        assert row["queueing_delay_ns"] == row["rtt_ns"] - row["base_rtt_ns"]
        w = before["window_milli"]
        queued = w * row["queueing_delay_ns"] / row["rtt_ns"]
        law = min(2 * w, w + GAMMA * (1000 * row["alpha"] - queued))
        assert row["window_milli"] == pytest.approx(law, abs=2 if at >= len(rows) // 2 else 1000)


@pytest.mark.long
@pytest.mark.parametrize("qdisc", REFUSING)
def test_a_qdisc_survives_any_request(guest: Guest, tmp_path: Path, qdisc: str) -> None:
    """Each of 100 000 requests is accepted or refused with a sentence; each sentence occurs."""
    folder = tmp_path / "run"
    endure(guest, folder, "fuzz", qdisc, "1", str(REQUESTS))
    check_fuzzed(folder, qdisc, REQUESTS)


def _short(experiment: Path) -> dict[str, Any]:
    """Return the experiment shortened to a few seconds, without statements."""
    document = copy.deepcopy(find_source(str(experiment)).document)
    for field in ("predictions", "claims", "findings", "unclaimed", "theory", "matrix", "figures"):
        document.pop(field, None)
    if any("transfers" in flow for flow in document.get("flows", [])):
        return document  # late transfers would be missing
    # Programs end at their own time.
    seconds = min(document["duration_s"], PROGRAMS_S) if "programs" in document else SHORT_S
    share = 1 if len(document.get("flows", [])) < MANY_FLOWS else 0.1
    document.update(duration_s=seconds * share, warm_up_s=WARM_UP_S * share)
    for kind in ("flows", "datagrams"):
        for each in document.get(kind, []):
            each["start_s"] = min(each.get("start_s", 0), WARM_UP_S * share)
    return document


def _kernel_side(experiment: Path) -> tuple[Any, ...]:
    """Return what the experiment demands of the kernel: topology, links, kinds of flows."""
    document = find_source(str(experiment)).document
    kinds = sorted({(flow["congestion"], *sorted(flow)) for flow in document.get("flows", [])})
    more = sorted(document.get("modules", {})), "programs" in document, "datagrams" in document
    return document["topology"]["name"], str(document["profile"]).partition("-")[0], kinds, more


def _representatives() -> list[Path]:
    """Return the first of all experiments with the same demands on the kernel."""
    first: dict[str, Path] = {}
    for experiment in map(find_experiment, all_ids()):
        first.setdefault(repr(_kernel_side(experiment)), experiment)
    return list(first.values())


@pytest.mark.parametrize("experiment", _representatives(), ids=lambda e: e.stem)
def test_experiments_run_clean(guest: Guest, tmp_path: Path, experiment: Path) -> None:
    """The kernel does not complain in the first seconds of an experiment."""
    short = tmp_path / experiment.name
    document = _short(experiment)
    short.write_text(yaml.safe_dump(document))
    for path in document.get("own_modules", []):  # modules lie below the experiment's folder
        (tmp_path / path).parent.mkdir(exist_ok=True)
        shutil.copyfile(experiment.parent / path, tmp_path / path)
    run_experiment(load_point(str(short)), Uml(guest), tmp_path / "results")
