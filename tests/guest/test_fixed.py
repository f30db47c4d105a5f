"""tcp_fixed keeps exactly its window in flight, on the real kernel."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.guest.control_names import CONTROLS, RESTRICTED
from support.guest.scripted_receiver import SCENARIOS
from support.guest.scripted_traces import Trace, play_scenarios
from support.running import ROOT
from support.runs import kept_in_guest

from twoway.guest.cache import Guest
from twoway.measure.analysis import Analysis
from twoway.measure.throughput import unwrap

NAMES = [name for name in SCENARIOS if name.startswith("fixed")]


@pytest.fixture(scope="module")
def traces(guest: Guest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Trace]:
    """Return the real sender's actions in each scenario."""
    return play_scenarios(guest, tmp_path_factory.mktemp("guest") / "run", "fixed")


@pytest.mark.parametrize("name", NAMES)
def test_flight_is_the_window(traces: dict[str, Trace], name: str) -> None:
    """While data is unsent, W segments are in flight after every event, even a loss or timeout."""
    scenario = SCENARIOS[name]
    window = int(scenario.congestion.removeprefix("fixed"))
    last = sum(scenario.writes)
    for step in traces[name]:
        flight = step["unacked"] - step["sacked"] - step["lost"] + step["retrans"]
        assert step["cwnd"] == window
        assert step["on_the_way"] <= window
        assert flight <= window
        if step["ack"] + step["unacked"] < last:
            assert flight == window


def flights(analysis: Analysis, name: str) -> Iterator[int]:
    """Return a lossless connection's bytes in flight after each steady instant."""
    run, view = analysis.run, analysis.connections[name]
    data = view.sent.data()
    acks = run.packets_between(view.connection.source_interface, view.connection, forward=False)
    acks = acks.where(acks.time_ns >= data.time_ns[0])
    sent = unwrap(data.seq) + data.payload_bytes
    acked = unwrap(acks.ack) + (int(acks.ack[0]) - int(data.seq[0])) % (1 << 32)
    for now in sorted({*data.time_ns.tolist(), *acks.time_ns.tolist()}):
        if run.steady_ns <= now < run.stop_ns:
            last_sent = data.time_ns.searchsorted(now, side="right") - 1
            last_acked = acks.time_ns.searchsorted(now, side="right") - 1
            yield int(sent[last_sent] - acked[last_acked])


def test_flight_in_captures(small_run: Path) -> None:
    """Two lossless opposite connections always have their whole window in flight."""
    analysis = Analysis(small_run)
    for name, window in (("left", 28), ("right", 20)):
        segment = int(analysis.connections[name].sent.payload_bytes.max())
        assert set(flights(analysis, name)) == {window * segment}


def test_tcp_fixed_checks_its_windows(guest: Guest, tmp_path: Path) -> None:
    """Each window registers a name; windows of zero, too many or equal segments are refused."""
    folder = tmp_path / "run"
    refused = {
        "windows=0": "windows: must be 1..65535 segments, got 0",
        "windows=30,65536": "windows: must be 1..65535 segments, got 65536",
        "windows=30,25,30": "windows: 30 is given twice",
    }
    attempts = ("windows=65535,1", *refused)
    program = ROOT / "tests/support/guest/load_modules.py"
    kept_in_guest(guest, folder, program, "tcp_fixed", *attempts, modules="tcp_fixed")
    found = json.loads((folder / "loads.json").read_text())
    assert found["windows=65535,1"]["registers"] == ["fixed1", "fixed65535"]
    for parameter, sentence in refused.items():
        assert found[parameter] == {
            "loaded": False,
            "said": [f"tcp_fixed: {sentence}"],
            "registers": [],
        }


@pytest.fixture(scope="module")
def names(guest: Guest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return which user could choose which of our controls, and the results for taken names."""
    folder = tmp_path_factory.mktemp("names") / "run"
    program = ROOT / "tests/support/guest/control_names.py"
    kept_in_guest(guest, folder, program, modules="tcp_*")
    found: dict[str, Any] = json.loads((folder / "names.json").read_text())
    return found


def test_no_answer_to_loss_takes_privileges(names: dict[str, Any]) -> None:
    """Only root may choose `fixed` and `prague`; any user may choose the other controls.

    Neither may be the default of a network namespace, unless an administrator allows it.
    """
    assert names["nobody"] == {name: "EPERM" * (name in RESTRICTED) for name in CONTROLS}
    assert names["root"] == dict.fromkeys(CONTROLS, "")
    assert names["namespace"] == {name: name not in RESTRICTED for name in CONTROLS}
    assert [name for name, error in names["allowed"].items() if not error] == ["fixed9"]


@pytest.mark.parametrize(
    ("which", "taken", "wanted"),
    [
        ("first", "tcp_tahoe: tahoe", ["tahoe", "tahoe_rto"]),
        ("second", "tcp_fixed: fixed31", ["fixed30", "fixed31", "fixed32"]),
    ],
)
def test_a_name_that_is_taken(
    names: dict[str, Any], which: str, taken: str, wanted: list[str]
) -> None:
    """A module with a name that another module has does not load, and leaves no other name."""
    found = names[which]
    assert found["said"] == [f"{taken}: there is a congestion control of this name already"]
    assert (found["loaded"], found["registered"]) == (False, [])
    assert found["then"] == wanted
