"""A topology and a profile beside an experiment's file, in a run."""

import shutil
from pathlib import Path

import pytest
from support.running import SMALL, write_experiment
from support.runs import carry_out

from twoway.contract.judge import Verdict
from twoway.measure.analysis import Analysis
from twoway.measure.document import compute
from twoway.paths import PROFILES, TOPOLOGIES

pytestmark = pytest.mark.usefixtures("guest")


def test_a_run_of_files_outside_the_checkout(tmp_path: Path) -> None:
    """The guest builds a topology from the plan alone, and all checks hold."""
    program = (TOPOLOGIES / "two_node.py").read_text().replace('"two_node"', '"mine"')
    (tmp_path / "mine.py").write_text(program)
    shutil.copy(PROFILES / "atm-131mbit.yml", tmp_path / "my-line.yml")
    document = {**SMALL, "topology": {"name": "mine"}, "profile": "my-line"}
    found = compute(Analysis(carry_out(write_experiment(tmp_path, document), tmp_path / "results")))
    assert {row.verdict for row in found.fidelity} == {Verdict.PASS}
