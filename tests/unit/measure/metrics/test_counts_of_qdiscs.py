"""Metrics from the kernel's counts, and from a program's times: marks and run times."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.column_run import analysis_of
from support.synthetic_run import write_run

from twoway.contract.network import ProgramRun
from twoway.measure.analysis import Analysis
from twoway.measure.metrics.marks import marks
from twoway.measure.metrics.programs import run_time


def _marked(folder: Path, before: Any, after: Any) -> float:
    """Return the marks of forward's queue from counts of its qdiscs before and after traffic."""
    write_run(folder)
    for when, counts in (("before", before), ("after", after)):
        (folder / f"qdisc/r1-{when}.json").write_text(json.dumps(counts))
    analysis = Analysis(folder)
    (found,) = marks.measure(analysis, analysis.queues["forward"])
    return found


def test_marks_are_added_over_parts_of_a_qdisc(tmp_path: Path) -> None:
    """Marks count from the start of traffic, as the sum over a qdisc's parts."""
    dev = {"dev": "r1-eth1"}
    before = [{**dev, "marked": 2}, {**dev, "ecn_mark": 0}]
    after = [
        {**dev, "marked": 5, "early": 70},
        {**dev, "tins": [{"ecn_mark": 10}, {"ecn_mark": 3, "drops": 9}], "ecn_mark": 1},
        {"dev": "r1-eth0", "marked": 1000},
    ]
    assert _marked(tmp_path, before, after) == 5 - 2 + 10 + 3 + 1


def test_a_queue_without_such_a_count_has_no_marks(tmp_path: Path) -> None:
    """A drop-tail queue has no count of marks; the metric is undefined, not 0."""
    assert np.isnan(_marked(tmp_path, [{"dev": "r1-eth1"}], [{"dev": "r1-eth1", "drops": 3}]))


def test_a_program_runs_from_its_start_to_its_end() -> None:
    """A program that ends by itself has a run time; others have none."""
    program = ProgramRun(
        name="a",
        host="h1",
        command=("true",),
        start_ns=2_000_000_000,
        by_itself=True,
        end_ns=2_500_000_001,
        exit_status=0,
    )
    analysis = analysis_of()
    assert run_time.measure(analysis, program) == pytest.approx((0.500000001,), rel=1e-12)
    asked = program.model_copy(update={"by_itself": False})
    assert math.isnan(run_time.measure(analysis, asked)[0])
