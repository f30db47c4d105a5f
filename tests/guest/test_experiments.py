"""End to end on the real kernel: points of shipped experiments, and small ones."""

import shutil
from pathlib import Path

import pytest
from support.kept_results import KERNEL, kept_numbers
from support.running import MISSED, SMALL, judge_kept, measure, write_experiment
from support.runs import carry_out
from support.today import DAY, DAYS, WEEK
from support.warm_command import twoway

from twoway.commands.options import all_ids
from twoway.contract.judge import Verdict
from twoway.contract.verdicts import Row
from twoway.description.point import point_names
from twoway.measure.analysis import Analysis
from twoway.measure.document import compute
from twoway.measure.real_time import ClockError
from twoway.paths import PROFILES, TOPOLOGIES
from twoway.runs.points import load_point

pytestmark = pytest.mark.usefixtures("guest")


# End to end on the real kernel: points of shipped experiments, and a small one.

EXPERIMENTS = all_ids()


def _todays_points() -> list[str]:
    """Return a point of each seventh experiment; the date chooses both, `make papers` runs all."""
    points = [point_names(name) for name in EXPERIMENTS[DAY::DAYS]]
    return [names[WEEK % len(names)] for names in points]


@pytest.mark.parametrize("name", _todays_points())
def test_a_point_is_as_its_file_says(name: str) -> None:
    """Checks and predictions hold; claims and findings are as the experiment's file says.

    The runs that explain a claim may be missing here.
    """
    found, kernel = judge_kept(name)
    assert found.rows or load_point(name).experiment.unclaimed
    assert found.misses == []
    assert [row for row in found.findings if row.verdict is not Verdict.AS_STATED] == []
    # Another kernel may give other digits; docs/results names the kernel of these values.
    # A kept line also has the values with which claims of other points are compared.
    if kernel == KERNEL:
        assert _numbers(found.rows).items() <= kept_numbers().get(name, {}).items()


def _numbers(rows: tuple[Row, ...]) -> dict[str, float | None]:
    return {r.metric: None if r.measured is None else float(f"{r.measured:.7g}") for r in rows}


def test_large_window_is_reached(tmp_path: Path) -> None:
    """A window of 900 segments is in flight in full: buffers follow the window."""
    flow = {**SMALL["flows"][0], "window_packets": 900}
    document = {**SMALL, "flows": [flow], "duration_s": 4, "warm_up_s": 2}
    found = measure(write_experiment(tmp_path, document), tmp_path / "results")
    checks = {row["check"]: row["value"] for row in found["fidelity"]}
    assert checks["left: most segments in flight, of a window of 900"] == 900


def test_delayed_acks_are_fewer(tmp_path: Path) -> None:
    """With `acks: delayed` there are fewer ACKs than segments, but at least one for two.

    It would be exactly one for two if no bunch had an odd number of segments.
    """
    document = {**SMALL, "stack": {"mtu_bytes": 9180, "acks": "delayed"}}
    found = measure(write_experiment(tmp_path, document), tmp_path / "results")
    ratios = [found["metrics"][f"ack_to_data.{name}"]["value"] for name in ("left", "right")]
    assert [round(ratio, 6) for ratio in ratios] == [0.554859, 0.673626]
    assert min(ratios) >= 0.5


def test_dumbbell_runs_two_pairs(tmp_path: Path) -> None:
    """Two pairs of hosts with equal windows get equal shares of a dumbbell's bottleneck."""
    flows = [
        {
            "name": f"pair{n}",
            "from": f"l{n}",
            "to": f"r{n}",
            "congestion": "fixed",
            "window_packets": 10,
        }
        for n in (1, 2)
    ] + [{"name": "back", "from": "r1", "to": "l1", "congestion": "cubic"}]
    document = {
        **SMALL,
        "flows": flows,
        "topology": {"name": "dumbbell", "parameters": {"pairs": 2}},
    }
    found = measure(write_experiment(tmp_path, document), tmp_path / "results")["metrics"]
    assert found["goodput.pair1"]["value"] == found["goodput.pair2"]["value"] > 0


def test_a_claim_that_is_missed_is_exit_code_1(tmp_path: Path) -> None:
    """A claim that differs without a listed reason fails the run; its report is written."""
    experiment = write_experiment(tmp_path, {**SMALL, "claims": [MISSED]})
    done = twoway("run", experiment, "--results", tmp_path / "results")
    assert done.returncode == 1
    assert "differs, unexplained efficiency.left" in done.stderr
    assert (tmp_path / "results/latest/report.html").is_file()


def test_a_wait_in_a_later_queue_is_no_delay_of_the_host(tmp_path: Path) -> None:
    """If packets wait in two queues of a path, the host delay in virtual time is still 0 ns."""
    folder = carry_out("dtm-fig2", tmp_path / "results")
    assert ClockError(Analysis(folder)).round_trip_ns == 0


# A topology and a profile beside an experiment's file, in a run.


def test_a_run_of_files_outside_the_checkout(tmp_path: Path) -> None:
    """The guest builds a topology from the plan alone, and all checks hold."""
    program = (TOPOLOGIES / "two_node.py").read_text().replace('"two_node"', '"mine"')
    (tmp_path / "mine.py").write_text(program)
    shutil.copy(PROFILES / "atm-131mbit.yml", tmp_path / "my-line.yml")
    document = {**SMALL, "topology": {"name": "mine"}, "profile": "my-line"}
    found = compute(Analysis(carry_out(write_experiment(tmp_path, document), tmp_path / "results")))
    assert {row.verdict for row in found.fidelity} == {Verdict.PASS}
