"""The module testbed by itself, on any guest: `make test-sanitized` runs this file, too."""

import json
from pathlib import Path

from in_guest import run_in_guest
from running import ROOT, SMALL, write_experiment

from twoway.backends.uml import Uml
from twoway.contract.manifest import read_manifest
from twoway.guest.cache import Guest
from twoway.runs.cases import load_case
from twoway.runs.run import run_case


def test_a_device_refuses_what_it_does_not_know(guest: Guest, tmp_path: Path) -> None:
    """Lines of unknown or wrong words are refused by errors of their own; nothing stays behind.

    A tap counts a ping's six packets twice, going out and coming in; one whose interface goes ends
    well; and the module can be unloaded.
    """
    program = ROOT / "tests/support/instruments_in_guest.py"
    run_in_guest(guest, tmp_path / "run", program)
    found = json.loads((tmp_path / "run/found.json").read_text())
    assert found["otherwise"] == []
    assert found["ping"].startswith("12 packets captured\n")
    assert found["gone"].startswith("0 packets captured\n")


def test_a_run_within_the_kernel(guest: Guest, tmp_path: Path) -> None:
    """Sent and recorded in the kernel, a run ends well, without its complaint or a packet lost."""
    flows = [{**flow, "generator": "kernel"} for flow in SMALL["flows"]]
    experiment = write_experiment(tmp_path, {**SMALL, "flows": flows, "duration_s": 0.6})
    folder = run_case(load_case(str(experiment)), Uml(guest), tmp_path / "results")
    assert set(read_manifest(folder).capture_drops.values()) == {0}
    assert len((folder / "sockets/tcp-info.csv").read_text().splitlines()) > 100
