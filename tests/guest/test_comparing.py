"""Comparing runs: differences are named, and equality is reported."""

import json
from pathlib import Path
from typing import Any

import pytest
from support import sharing
from support.running import SMALL, run_small, write_experiment
from support.warm_command import twoway

from twoway.contract.comparison import Comparison

pytestmark = pytest.mark.usefixtures("guest")


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


def test_two_runs_of_the_same_are_the_same(results: Path) -> None:
    """Two runs of one plan have equal metrics and captures; the exit code is 0."""
    code, document = _compared(results, "a", "b")
    assert code == 0
    assert (document.parameters, document.metrics, document.partings) == ({}, {}, ())
    assert document.common_captures == 6


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


def test_captures_are_said_to_part_in_the_order_of_time(results: Path) -> None:
    """Each differing capture is listed with its first different packet, the earliest first."""
    _, document = _compared(results, "a", "c")
    times = [float(str(parting.first).split()[0]) for parting in document.partings]
    assert len(times) + document.common_captures == 6
    assert times == sorted(times)


def test_what_is_no_run_is_named(results: Path) -> None:
    """A name without a run, and a single run, are usage errors."""
    missing = twoway("compare", "a", "nosuch", "--results", results)
    assert missing.returncode == 2
    assert "nosuch: neither a finished run's folder nor an experiment or" in missing.stderr
    assert twoway("compare", "a", "--results", results).returncode == 2
