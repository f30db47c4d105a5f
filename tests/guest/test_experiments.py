"""End to end: the first point of every experiment that we ship, on the real kernel."""

from pathlib import Path

import pytest
from running import ROOT, SMALL, measure, measure_kept, twoway, write_experiment

from twoway.backends.uml import Uml
from twoway.guest.build import Guest
from twoway.report.report import analyse_run
from twoway.runs.cases import load_case
from twoway.runs.run import run_case
from twoway.spec import point
from twoway.spec.point import case_names

pytestmark = pytest.mark.usefixtures("guest")

EXPERIMENTS = sorted(path.stem for path in (ROOT / "experiments").glob("*.yml"))
# Claims that their experiment's first point contradicts, by the point's name; docs/findings.md
# says the same. They stay claims, and are red in `make papers`.
CONTRADICTED = {"modern-cc@control=reno,buffer=30": ["acks_compressed.right"]}


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_first_point_contradicts_what_is_named_and_no_more(name: str) -> None:
    """All fidelity checks of a first point pass, and all its claims but those in CONTRADICTED."""
    first = case_names(name)[0]
    found = measure_kept(first)
    assert found["expect"]
    assert [row for row in found["fidelity"] if not row["pass"]] == []
    failed = [row["metric"] for row in found["expect"] if not row["pass"]]
    assert failed == CONTRADICTED.get(first, [])


def test_contradicted_claims_are_of_first_points() -> None:
    """Each name in CONTRADICTED is a first point with such a claim, so the test above meets it."""
    assert set(CONTRADICTED) <= {case_names(name)[0] for name in EXPERIMENTS}
    for name, claims in CONTRADICTED.items():
        assert set(claims) <= {each.metric for each in load_case(name).experiment.expect}


def test_two_flows_have_windows_of_their_own(small_run: Path) -> None:
    """Windows of 28 and 20 in one kernel: each sender's flight reaches its own and no more."""
    rows = (small_run / "sockets/tcp-info.csv").read_text().splitlines()[3:]
    cwnd = {
        port: {int(r.split(",")[6]) for r in rows if r.split(",")[3] == port}
        for port in ("40001", "40002")
    }
    assert cwnd == {"40001": {28}, "40002": {20}}


def test_fixed_window_survives_loss(
    guest: Guest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a queue too short for the window, data is dropped and the window stays."""
    profile = (ROOT / "tc-profiles/atm-131mbit.yml").read_text()
    assert "queue_packets: 1000" in profile
    short = profile.replace("queue_packets: 1000", "queue_packets: 8")
    (tmp_path / "atm-131mbit.yml").write_text(short)
    monkeypatch.setattr(point, "PROFILES", tmp_path)
    loaded = load_case(str(write_experiment(tmp_path, SMALL)))
    folder = run_case(loaded, Uml(guest), tmp_path / "results")
    document = analyse_run(folder, pictures=False)
    assert document.pass_
    assert (document.metrics["drops_data.forward"].value or 0) > 0
    rows = (folder / "sockets/tcp-info.csv").read_text().splitlines()[3:]
    assert {int(r.split(",")[6]) for r in rows if r.split(",")[3] == "40001"} == {28}


def test_iperf3_measures_what_the_capture_holds(tmp_path: Path) -> None:
    """iperf3 in both directions: its bytes agree with the capture, and its windows hold."""
    flows = [{**flow, "generator": "iperf3"} for flow in SMALL["flows"]]
    document = {**SMALL, "flows": flows, "duration_s": 3, "warm_up_s": 1}
    found = measure(write_experiment(tmp_path, document), tmp_path / "results")
    assert found["metrics"]["efficiency.left"]["value"] > 0.5
    assert any("sink's" in row["check"] for row in found["fidelity"])


def test_large_window_is_reached(tmp_path: Path) -> None:
    """A window of 900 segments is in flight in full: buffers follow the window."""
    flow = {**SMALL["flows"][0], "window_packets": 900}
    document = {**SMALL, "flows": [flow], "duration_s": 4, "warm_up_s": 2}
    found = measure(write_experiment(tmp_path, document), tmp_path / "results")
    checks = {row["check"]: row["value"] for row in found["fidelity"]}
    assert checks["left: most segments in flight, of a window of 900"] == 900


def test_delayed_acks_halve_the_acks(tmp_path: Path) -> None:
    """With acks: delayed the receiver answers every second segment of a bulk flow."""
    document = {**SMALL, "stack": {"mtu_bytes": 9180, "acks": "delayed"}}
    found = measure(write_experiment(tmp_path, document), tmp_path / "results")
    ratio = found["metrics"]["ack_to_data.left"]["value"]
    assert 0.45 < ratio < 0.75


def test_dumbbell_runs_two_pairs(tmp_path: Path) -> None:
    """Two pairs of hosts share the bottleneck of a dumbbell."""
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
    assert found["goodput.pair1"]["value"] > 0
    assert found["goodput.pair1"]["value"] == pytest.approx(
        found["goodput.pair2"]["value"], rel=0.2
    )


def test_expectation_that_fails_is_exit_code_1(tmp_path: Path) -> None:
    """A wrong expectation fails the run by its verdict, with the report written all the same."""
    wrong = {
        "metric": "efficiency.left",
        "value": 0.99,
        "tolerance": 0.001,
        "source": "theory",
        "why": "wrong on purpose",
    }
    experiment = write_experiment(tmp_path, {**SMALL, "expect": [wrong]})
    done = twoway("run", experiment, "--results", tmp_path / "results")
    assert done.returncode == 1
    assert "FAIL efficiency.left" in done.stderr
    assert (tmp_path / "results/latest/report.html").is_file()
