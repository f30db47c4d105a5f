"""Sweeps: on all cores, resumed after any end, with nothing lost or repeated."""

import fcntl
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.running import (
    CLAIMED,
    MISSED,
    ROOT,
    SMALL,
    SWEPT,
    WINDOWS,
    guest_processes,
    write_experiment,
)
from support.today import DAY
from support.warm_command import twoway

from twoway.backends.uml import Uml
from twoway.guest.cache import Guest, built_guest
from twoway.manifest import read_manifest
from twoway.plan.plan import build_plan
from twoway.runs import identity as identities
from twoway.runs import run
from twoway.runs.identity import identity
from twoway.runs.points import load_point
from twoway.runs.run import kept_run
from twoway.sweeps.sweep import Work, run_point

pytestmark = pytest.mark.usefixtures("guest")

# Of a sweep that a test makes anew: more points than workers.
FEW = WINDOWS[:4]


def _sweep_of(windows: Sequence[int], **fields: Any) -> dict[str, Any]:
    """Describe the sweep of some of SWEPT's windows."""
    window = {**SWEPT["matrix"]["window"], "to": list(windows)}
    return {**SWEPT, "matrix": {"window": window}, **fields}


def _run(name: str | Path, results: Path) -> Path:
    return run.run_experiment(load_point(str(name)), Uml(built_guest()), results)


def _runs(results: Path) -> dict[str, list[str]]:
    """Return the finished runs of each point; none may look partial."""
    return {
        folder.name: sorted(run.name for run in folder.iterdir() if run.suffix != ".partial")
        for folder in results.glob("small@*")
    }


@pytest.fixture
def swept(sweep_results: Path, tmp_path: Path) -> tuple[Path, Path]:
    """Make a file with the sweep, and its results."""
    results = shutil.copytree(sweep_results, tmp_path / "results", symlinks=True)
    return write_experiment(tmp_path, SWEPT), results


def _command(path: Path, results: Path) -> list[str]:
    return [sys.executable, "-m", "twoway.cli", "sweep", str(path), "--results", str(results)]


def test_points_run_once(swept: tuple[Path, Path]) -> None:
    """A sweep makes one run of each point; `run` of the same sweep makes none, and reports that.

    The JSON document names each point, and says that its run was kept and passed.
    """
    path, results = swept
    runs = _runs(results)
    assert set(runs) == {f"small@window={window}" for window in WINDOWS}
    assert all(len(found) == 1 for found in runs.values())
    again = twoway("run", path, "--results", results, "--json")
    assert again.stderr.count("(kept)") == len(WINDOWS)
    assert _runs(results) == runs
    said = json.loads(again.stdout)
    assert [outcome["name"] for outcome in said] == [f"{path}@window={w}" for w in WINDOWS]
    assert all(outcome["kept"] and outcome["pass"] for outcome in said)


def test_broken_runs_are_named_and_made_again(swept: tuple[Path, Path]) -> None:
    """A run with a truncated or missing file is named and repeated; lost metrics are computed."""
    path, results = swept
    broken = [folder for runs in sorted(results.glob("small@*")) for folder in runs.iterdir()]
    harm: list[tuple[str, bytes | None, str]] = [
        ("manifest.json", b'{"schema": 4,', "manifest.json: not JSON"),
        ("manifest.json", b'{"schema": 1}', "manifest.json: not of schema 4 but 1"),
        ("pcap/h1-eth0.pcap.zst", b"cut", "changed since the run: pcap/h1-eth0.pcap.zst"),
        ("sockets/queues.csv", None, "changed since the run: sockets/queues.csv"),
        ("metrics.json", b'{"schema"', ""),
        ("verdicts.json", b"[]", ""),
    ]
    for folder, (name, content, _) in zip(broken, harm, strict=True):
        (folder / name).unlink() if content is None else (folder / name).write_bytes(content)
    done = twoway("sweep", path, "--results", results)
    assert done.returncode == 0, done.stderr
    said = " ".join(done.stderr.split())
    for folder, (_, _, sentence) in zip(broken, harm, strict=True):
        if sentence:
            assert f"not kept: {folder}" in said
            assert sentence in said
    assert said.count("not kept: ") == 4
    assert [len(found) for _, found in sorted(_runs(results).items())] == [2, 2, 2, 2, 1, 1]
    for folder in broken[:2]:  # without this the documents of all tests would include them
        shutil.rmtree(folder)


def test_sweep_gives_the_same_bytes_as_a_run(sweep_results: Path, tmp_path: Path) -> None:
    """In a sweep with two workers a point has the captures that it has when run alone."""
    _run(f"{write_experiment(tmp_path, SWEPT)}@window=8", tmp_path / "one")
    captures = [
        {path.name: path.read_bytes() for path in folder.glob("small@window=8/2*/pcap/*")}
        for folder in (sweep_results, tmp_path / "one")
    ]
    assert captures[0] == captures[1]
    assert captures[0]


def test_changed_claims_are_judged_without_a_run(swept: tuple[Path, Path]) -> None:
    """A claim added later is judged on existing runs; if it fails, the status is 1."""
    path, results = swept
    runs = _runs(results)
    missed = {**MISSED, "at": {"window": 8}, "elsewhere": "one is enough"}
    write_experiment(path.parent, {**SWEPT, "claims": [CLAIMED, missed]})
    again = twoway("sweep", path, "--results", results)
    assert again.returncode == 1
    assert f"\n     twoway run {path}@window=8 --results {results}\n" in again.stderr
    assert "\n     efficiency.left  " in again.stderr
    assert _runs(results) == runs
    (folder,) = (results / "small@window=8").glob("2*")
    said = json.loads((folder / "verdicts.json").read_text())["claims"]
    assert [row["verdict"] for row in said] == ["agrees", "differs, unexplained"]
    assert [row["listed"] for row in said] == [True, False]


@pytest.mark.usefixtures("guest")
def test_two_sweeps_at_once_share_the_points(tmp_path: Path) -> None:
    """Two simultaneous sweeps of the same points both succeed, and each point runs once."""
    path, results = write_experiment(tmp_path, _sweep_of(FEW)), tmp_path / "results"
    both = [subprocess.Popen(_command(path, results), cwd=ROOT) for _ in range(2)]
    assert [sweep.wait(timeout=300) for sweep in both] == [0, 0]
    assert [len(runs) for runs in _runs(results).values()] == [1] * len(FEW)


def test_a_failing_point_stops_no_other(swept: tuple[Path, Path]) -> None:
    """If one point fails, all others still finish, and the command that reruns it is printed.

    Here four other points have runs already, and one runs now.
    """
    path, results = swept
    for window in (8, 10):
        shutil.rmtree(results / f"small@window={window}")
    (results / "small@window=8").write_text("in the way of the run's folder")
    done = twoway("sweep", path, "--results", results)
    assert done.returncode == 1
    assert f"FAIL {path.stem}@window=8: " in done.stderr
    assert f"twoway run {path}@window=8" in done.stderr
    assert "5 of 6 points are as their files say" in done.stderr
    assert len(list(results.glob("small@*/2*/metrics.json"))) == len(WINDOWS) - 1


def _kill_a_sweep(path: Path, results: Path, how: signal.Signals) -> int:
    """End a sweep after its first finished run, wait for its guests, and return its runs."""
    process = subprocess.Popen(_command(path, results), cwd=ROOT, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 120
    while not list(results.glob("small@*/2*/metrics.json")):
        assert time.monotonic() < deadline
        threading.Event().wait(0.02)
    os.kill(process.pid, how)
    process.wait()
    while guest_processes(results):
        assert time.monotonic() < deadline
        threading.Event().wait(0.02)
    return sum(any(run[0] == "2" for run in runs) for runs in _runs(results).values())


# The date chooses a signal for `make test`; `make check` has both.
@pytest.mark.parametrize(
    "how",
    [
        pytest.param(how, marks=[pytest.mark.long] * (k != DAY % 2))
        for k, how in enumerate((signal.SIGINT, signal.SIGKILL))
    ],
)
def test_a_killed_sweep_is_resumed(tmp_path: Path, how: signal.Signals) -> None:
    """An interrupted sweep leaves no guest, and the next sweep completes it."""
    path, finished, attempts = write_experiment(tmp_path, _sweep_of(FEW)), len(FEW), 0
    while finished == len(FEW):  # on a busy machine all points may finish before the kill
        results, attempts = tmp_path / f"results-{attempts}", attempts + 1
        finished = _kill_a_sweep(path, results, how)
        assert attempts < 6, "a sweep that cannot be ended, where SIGINT is ignored, say"
    assert finished > 0
    again = twoway("sweep", path, "--results", results)
    assert again.returncode == 0, again.stderr
    assert again.stderr.count("(kept)") >= finished
    assert len(list(results.glob("small@*/2*/metrics.json"))) == len(FEW)


def test_what_a_killed_run_left_is_removed(tmp_path: Path, small: Path) -> None:
    """The next run removes the folder of a run whose process is dead, but not a live one's."""
    parent = tmp_path / "results/small"
    for name in (".running-dead", ".running-alive"):
        (parent / name).mkdir(parents=True)
    (parent / ".running-dead/lock").touch()
    with (parent / ".running-alive/lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        folder = _run(small, tmp_path / "results")
    assert sorted(parent.iterdir()) == [parent / ".running-alive", folder]
    assert not (folder / "lock").exists()


def test_a_point_is_run_as_it_was_read(
    guest: Guest, small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker does not read its point's file, and builds the plan once."""
    point, built = load_point(str(small)), []
    small.unlink()
    results = tmp_path / "results"

    def counted(*args: Any, **more: Any) -> Any:
        built.append(args)
        return build_plan(*args, **more)

    for module in (run, identities):
        monkeypatch.setattr(module, "build_plan", counted)
    run.run_experiment(point, Uml(guest), results)
    assert len(built) == 1
    outcome = run_point(Work(str(small), point, Uml(guest), results))
    assert (outcome.kept, outcome.error) == (True, "")


def test_identity_is_of_what_decides_the_bytes(guest: Guest, tmp_path: Path) -> None:
    """Texts, claims and warm-up leave the identity; a window, a profile or the MTU changes it."""

    def of(**fields: Any) -> str:
        path = write_experiment(tmp_path, {**SMALL, **fields})
        return identity(load_point(str(path)), Uml(guest))

    same = of()
    assert of(title="Another", claims=[CLAIMED], warm_up_s=0.25) == same
    flows = json.loads(json.dumps(SMALL["flows"]))
    flows[0]["window_packets"] += 1
    changed = [of(flows=flows), of(profile="slots-1ms"), of(stack={"mtu_bytes": 9000})]
    assert len({same, *changed}) == 4


def test_identity_is_of_the_kernel(guest: Guest, tmp_path: Path) -> None:
    """Guests with different kernels give different identities, even to a run without modules."""
    kernel = tmp_path / "build/linux"
    kernel.parent.mkdir()
    kernel.write_bytes(guest.kernel.read_bytes() + b"\0")
    other = replace(guest, kernel=kernel)
    for name in ("kalampoukas-5.2", "aqm@aqm=drop-tail,up_mbit=8"):
        point = load_point(name)
        assert identity(point, Uml(guest)) != identity(point, Uml(other))
    assert build_plan(point).modules == []


def test_run_of_another_kernel_is_run_once_more(
    guest: Guest, small: Path, small_run: Path, tmp_path: Path
) -> None:
    """A run on another kernel does not count, so the point runs again."""
    other = replace(guest, kernel=tmp_path / "linux")
    other.kernel.write_bytes(b"another kernel")
    point, results = load_point(str(small)), tmp_path / "results"
    left = shutil.copytree(small_run, results / "small" / small_run.name)
    document = json.loads((left / "manifest.json").read_text())
    document["identity"] = identity(point, Uml(other))
    (left / "manifest.json").write_text(json.dumps(document))
    assert kept_run(point, Uml(guest), results) is None
    again = _run(small, results)
    assert kept_run(point, Uml(guest), results) == again


def test_nothing_of_a_finished_run_is_rewritten(small_run: Path, tmp_path: Path) -> None:
    """A changed claim or title is judged again; the files of the run keep every byte."""
    results = tmp_path / "results"
    folder = shutil.copytree(small_run, results / "small" / small_run.name)

    def left() -> dict[str, bytes]:
        names = [*json.loads((folder / "manifest.json").read_text())["files"], "manifest.json"]
        return {name: (folder / name).read_bytes() for name in names}

    before = left()
    path = write_experiment(tmp_path, {**SMALL, "title": "Another", "claims": [MISSED]})
    done = twoway("sweep", path, "--results", results)
    assert done.returncode == 1
    assert "(kept)" in done.stderr
    assert left() == before
    document = json.loads((folder / "verdicts.json").read_text())
    assert [row["value"] for row in document["claims"]] == [0.0]
    assert read_manifest(folder).experiment.title == "Another"


def test_a_changed_module_concerns_who_loads_it(guest: Guest, tmp_path: Path) -> None:
    """A changed module or part of tc changes the identity only of runs that load it."""
    experiments = ("kalampoukas-5.2", "fast-ex5", "wifi-uplink@wait=0.002")
    differ = {}
    for changed in ("tcp_fixed.ko", "q_timetable.so", "stream"):
        programs = shutil.copytree(guest.programs, tmp_path / changed)
        with (programs / changed).open("ab") as file:
            file.write(b"\0")
        other = replace(guest, programs=programs)
        differ[changed] = [
            point.id
            for point in map(load_point, experiments)
            if identity(point, Uml(guest)) != identity(point, Uml(other))
        ]
    assert differ == {
        "tcp_fixed.ko": ["kalampoukas-5.2", "wifi-uplink@wait=0.002"],
        "q_timetable.so": ["wifi-uplink@wait=0.002"],
        "stream": [*experiments],
    }


def _captures(results: Path) -> dict[str, bytes]:
    return {
        f"{path.parts[-4]}/{path.name}": path.read_bytes()
        for path in results.glob("small@*/2*/pcap/*")
    }


def test_papers_leave_no_captures(sweep_results: Path, tmp_path: Path) -> None:
    """Runs that `papers` makes have no captures; `run` makes equal captures again.

    `papers` keeps captures that its pages link to, those of earlier runs, and all with
    --keep-captures. A sweep leaves none with --keep metrics.
    """
    two = WINDOWS[0], 8
    swept = _sweep_of(two, claims=[CLAIMED])
    path, results = write_experiment(tmp_path, swept), tmp_path / "results"
    first = f"small@window={WINDOWS[0]}"
    shutil.copytree(sweep_results / first, results / first)  # from an earlier run
    assert twoway("papers", path, "--results", results).returncode == 0
    assert {name.partition("/")[0] for name in _captures(results)} == {first}
    assert f"window={WINDOWS[0]}" in (results / "small/index.html").read_text("utf-8")
    runs = _runs(results)
    (folder,) = (results / "small@window=8").glob("2*")
    assert not (folder / "sockets").exists()
    again = twoway("papers", path, "--results", results)
    assert again.stderr.count("(kept)") == len(two)
    assert _runs(results) == runs
    commands: list[list[str | Path]] = [["figures", folder], ["share", folder, "--captures"]]
    for command in commands:
        refused = twoway(*command, "--results", results, cwd=tmp_path)
        assert refused.returncode
        assert "`twoway run small@window=8` makes them again" in " ".join(refused.stderr.split())
    _run(f"{path}@window=8", results)
    wanted = {name: of for name, of in _captures(sweep_results).items() if "=8/" in name}
    assert {name: of for name, of in _captures(results).items() if "=8/" in name} == wanted
    none, all_kept = tmp_path / "none", tmp_path / "kept"
    done = twoway("sweep", f"{path}@window=8", "--keep", "metrics", "--results", none)
    assert "without captures: 1 of the runs" in done.stderr
    assert (_captures(none), len([*none.glob("*/2*/report.html")])) == ({}, 1)
    twoway("papers", path, "--keep-captures", "--results", all_kept)
    swept_captures = _captures(sweep_results)
    assert _captures(all_kept) == {
        name: of for name, of in swept_captures.items() if re.match(r"small@window=[48]/", name)
    }
