"""Finished runs: exported, gathered from another machine, compared, and spoilt by their guest."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from flent import resultset
from support import sharing
from support.running import ROOT, SMALL, run_small, write_experiment
from support.runs import kept
from support.warm_command import twoway

from twoway.contract.comparison import Comparison
from twoway.report.export import export_run

# `twoway export` of a run of the guest.


@pytest.mark.usefixtures("guest")
def test_the_guides_mean(tmp_path: Path) -> None:
    """Flent's reader finds the mean goodputs that the guide prints."""
    (mbit,) = re.findall(r"\*\*([0-9.]+) Mbit/s\*\*", (ROOT / "docs/guides/exports.md").read_text())
    with kept("kalampoukas-5.2") as folder:
        found = resultset.load(str(export_run(folder, "flent", tmp_path / "run.flent.gz")))
    for direction in ("download", "upload"):
        goodputs = found.series(f"TCP {direction} BE::1")
        assert f"{sum(goodputs) / len(goodputs):.2f}" == mbit


# A gathered run has a report of this machine, not the one that it was sent with.


def test_a_gathered_run_has_a_report_of_this_machine(small_run: Path, tmp_path: Path) -> None:
    """`lab gather` writes a run's report again, and keeps nothing of a page from the archive."""
    there = tmp_path / "there" / small_run.parent.name / small_run.name
    shutil.copytree(small_run, there)
    (there / "report.html").write_text("<script>alert(1)</script>")
    packed = twoway("lab", "pack", "--results", tmp_path / "there", "--to", tmp_path / "runs.tar")
    assert packed.returncode == 0, packed.stderr
    here = tmp_path / "here"
    done = twoway("lab", "gather", tmp_path / "runs.tar", "--results", here)
    assert done.returncode == 0, done.stderr
    page = here / small_run.parent.name / small_run.name / "report.html"
    assert "alert(1)" not in page.read_text("utf-8")
    assert "efficiency" in page.read_text("utf-8").lower()


# A guest's program spoils files that the analysis reads: one point fails, in a sentence.

# Programs of the guest are root there, and keep no capability to raise a limit.
LIFT = """
(ulimit -f unlimited)
prlimit --fsize=unlimited --pid $$
(truncate -s 1T /mnt/run/pcap/h1-eth0.pcap)
(head -c 70000000 /dev/zero)
exit 0
"""


def _with_program(folder: Path, name: str, script: str) -> Path:
    command = {"name": "a", "host": "h1", "command": ["sh", "-c", script]}
    return write_experiment(folder, {**SMALL, "programs": [command]}, name)


@pytest.mark.usefixtures("guest")
def test_a_spoiled_document_fails_its_point_alone(tmp_path: Path) -> None:
    """A sweep reports a point with a spoiled document and all others; `clean` removes the run."""
    spoiled = _with_program(tmp_path, "spoiled", "echo 7 > /mnt/run/qdisc/r2-before.json")
    sound = write_experiment(tmp_path, SMALL, "sound")
    words = "qdisc/r2-before.json: must be a valid list"
    alone = twoway("run", spoiled, "--results", tmp_path)
    assert (alone.returncode, words in alone.stderr) == (1, True), alone.stderr
    for _ in range(2):
        done = twoway("run", spoiled, sound, "--results", tmp_path)
        assert done.returncode == 1
        assert "Traceback" not in done.stderr
        assert words in done.stderr
        assert "1 of 2 points are as their files say" in done.stderr
        assert len([*tmp_path.glob("sound/2*/report.html")]) == 1
    assert twoway("clean", "--results", tmp_path, "--yes").returncode == 0
    assert [*tmp_path.glob("spoiled/*")] == []
    assert len([*tmp_path.glob("sound/2*")]) == 1


@pytest.mark.usefixtures("guest")
def test_no_program_lifts_its_limit(tmp_path: Path) -> None:
    """A program cannot lift its limit of 64 MiB a file, and makes no larger sparse file."""
    path = _with_program(tmp_path, "lifting", LIFT)
    done = twoway("run", path, "--results", tmp_path)
    assert done.returncode == 0, done.stderr
    (run,) = tmp_path.glob("lifting/2*")
    assert (run / "programs/a.out").stat().st_size == 64 << 20
    said = (run / "programs/a.err").read_text()
    assert said.count("Operation not permitted") == 2
    assert "File size limit exceeded" in said


# Comparing runs: differences are named, and equality is reported.


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make three runs: two of the small experiment, and one with another window."""

    def make(folder: Path) -> None:
        flows: list[dict[str, Any]] = [{**flow} for flow in SMALL["flows"]]
        flows[0]["window_packets"] = 27
        for name, document in (("a", SMALL), ("b", SMALL), ("c", {**SMALL, "flows": flows})):
            (folder / name).mkdir()
            path = write_experiment(folder / name, document)
            run_small(path.rename(folder / f"{name}.yml"), folder / "results")

    return sharing.once(tmp_path_factory, "compared", make) / "results"


def _compared(results: Path, *names: str) -> tuple[int, Comparison]:
    page = results.parent / f"{'-'.join(names)}.html"
    done = twoway("compare", *names, "--results", results, "--to", page, "--json")
    assert "<table" in page.read_text("utf-8")
    return done.returncode, Comparison.model_validate(json.loads(done.stdout))


@pytest.mark.usefixtures("guest")
def test_two_runs_of_the_same_are_the_same(results: Path) -> None:
    """Two runs of one plan have equal metrics and captures; the exit code is 0."""
    code, document = _compared(results, "a", "b")
    assert code == 0
    assert (document.parameters, document.metrics, document.partings) == ({}, {}, ())
    assert document.common_captures == 6


@pytest.mark.usefixtures("guest")
def test_a_window_of_one_segment_less_is_found(results: Path) -> None:
    """The differing parameter is named, and the first packet that only one run sends."""
    code, document = _compared(results, "a", "c")
    assert code == 1
    assert document.parameters["experiment.flows.left.window_packets"].values == (28, 27)
    assert document.metrics["efficiency.left"].values[0] is not None
    first = document.partings[0]
    assert first.interface == "h1-eth0"
    assert first.first is not None
    # A window of 27 forbids the 28th segment of 9140 bytes. The connection's first byte was sent
    # before the traffic.
    assert f"seq {27 * 9140 + 2}:{28 * 9140 + 2} " in first.first
    assert first.second != first.first


@pytest.mark.usefixtures("guest")
def test_captures_are_said_to_part_in_the_order_of_time(results: Path) -> None:
    """Each differing capture is listed with its first different packet, the earliest first."""
    _, document = _compared(results, "a", "c")
    times = [float(str(parting.first).split()[0]) for parting in document.partings]
    assert len(times) + document.common_captures == 6
    assert times == sorted(times)


@pytest.mark.usefixtures("guest")
def test_what_is_no_run_is_named(results: Path) -> None:
    """A name without a run, and a single run, are usage errors."""
    missing = twoway("compare", "a", "nosuch", "--results", results)
    assert missing.returncode == 2
    assert "nosuch: neither a finished run's folder nor an experiment or" in missing.stderr
    assert twoway("compare", "a", "--results", results).returncode == 2
