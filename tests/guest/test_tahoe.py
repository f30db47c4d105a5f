"""tcp_tahoe sends what 4.3BSD-Tahoe would, segment by segment, on the real kernel."""

import json
from pathlib import Path

import pytest
from in_guest import run_in_guest
from running import ROOT
from scripted_receiver import SCENARIOS, SYSCTLS
from scripted_traces import Trace, play_scenarios
from tahoe_model import ModelPath

from twoway.guest.build import Guest
from twoway.plan import personality
from twoway.spec.experiment import Stack

PAPERS = Stack(sack=False, rack=False, tail_loss_probe=False, spurious_timeout_detection=False)
RANDOM = [name for name in SCENARIOS if "random" in name]
NAMES = [name for name in SCENARIOS if name.startswith("tahoe") and name not in RANDOM]


@pytest.fixture(scope="module")
def traces(guest: Guest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Trace]:
    """What the real sender did in each scenario."""
    return play_scenarios(guest, tmp_path_factory.mktemp("guest") / "run", "tahoe")


@pytest.mark.parametrize("name", NAMES)
def test_trace_is_the_models(traces: dict[str, Trace], name: str) -> None:
    """Every segment sent and every window and threshold between are those of the paper's sender."""
    columns = ("event", "ack", "sent", "cwnd", "ssthresh")
    got = [tuple(step[column] for column in columns) for step in traces[name]]
    assert got == ModelPath(SCENARIOS[name]).run()


@pytest.mark.parametrize("name", RANDOM)
def test_random_losses(traces: dict[str, Trace], name: str) -> None:
    """Whatever is lost, segments and thresholds are those of the paper's sender.

    Not so cwnd: after a timeout the stack counts duplicates of what has been sent since, which
    lowers what it shows, and changes nothing that is sent.
    """
    got = [(step["event"], step["ack"], step["sent"], step["ssthresh"]) for step in traces[name]]
    model = ModelPath(SCENARIOS[name]).run()
    assert got == [(event, ack, sent, ssthresh) for event, ack, sent, _, ssthresh in model]


def test_second_loss_of_a_window(traces: dict[str, Trace]) -> None:
    """The paper's footnote 9: the first loss halves ssthresh, the second sets it to 2."""
    trace = traces["tahoe: two in a row"]
    third_duplicate = next(i for i, step in enumerate(trace) if step["sent"] == [40])
    before, first = trace[third_duplicate - 3], trace[third_duplicate]
    # Segments 40 and 41 are sent by the 40th ACK in slow start, at a window of 41.
    assert (before["ack"], before["cwnd"], first["ssthresh"]) == (40, 41, 20)
    # Nothing is sent on the duplicates, nor when the first hole is filled.
    timeout = next(i for i, step in enumerate(trace) if step["event"] == "timeout")
    assert all(step["sent"] == [] for step in trace[third_duplicate + 1 : timeout])
    filled, second = trace[timeout - 1], trace[timeout]
    assert (filled["ack"], filled["cwnd"], filled["ssthresh"]) == (41, 2, 20)
    assert (second["sent"], second["cwnd"], second["ssthresh"]) == ([41], 1, 2)


def test_waits_for_the_timer(traces: dict[str, Trace]) -> None:
    """tahoe_rto retransmits upon no number of duplicates, tahoe upon the third."""
    fast = [step["event"] for step in traces["tahoe: one loss in slow start"]]
    slow = traces["tahoe_rto: one loss"]
    assert "timeout" not in fast
    (timeout,) = [step for step in slow if step["event"] == "timeout"]
    assert (timeout["sent"], timeout["cwnd"], timeout["ssthresh"]) == ([40], 1, 20)
    duplicates = [step for step in slow if step["ack"] == 40 and step["sent"] == []]
    assert len(duplicates) == 40


def test_growth_differs(traces: dict[str, Trace]) -> None:
    """1/floor(w) opens the window by one per window of ACKs, BSD's rule later."""
    floor, bsd = (
        [step["cwnd"] for step in traces[name] if step["ssthresh"] == 10]
        for name in ("tahoe: one loss in slow start", "tahoe: bsd growth")
    )
    first, later = floor.index(10), floor.index(11)
    assert later - first == 10
    assert bsd.index(11) - bsd.index(10) > 10


def test_scripted_stack_is_that_of_experiments() -> None:
    """The sender's settings are those that an experiment on the papers' TCP gives its hosts."""
    wanted = personality.node_sysctls(PAPERS, router=False)
    assert {name: wanted.get(name, value) for name, value in SYSCTLS.items()} == SYSCTLS
    assert personality.root_sysctls(PAPERS)["net.core.wmem_max"] == SYSCTLS["net.core.wmem_max"]


def test_parameters(guest: Guest, tmp_path: Path) -> None:
    """Either rule loads and registers both names; another is refused with a sentence."""
    folder = tmp_path / "run"
    growths = ("growth=floor", "growth=bsd", "growth=fast", "growth=")
    starts = ("slow_start=bsd", "slow_start=late")
    run_in_guest(
        guest, folder, ROOT / "tests/support/load_modules.py", "tcp_tahoe", *growths, *starts
    )
    found = json.loads((folder / "loads.json").read_text())
    both = {"loaded": True, "said": [], "registers": ["tahoe", "tahoe_rto"]}
    assert found["growth=bsd"] == both
    assert found["growth=floor"]["registers"] == both["registers"]
    assert found["slow_start=bsd"] == both
    assert found["slow_start=late"]["said"] == [
        'tcp_tahoe: slow_start: must be paper or bsd, got "late"'
    ]
    for value in ("fast", ""):
        assert found[f"growth={value}"] == {
            "loaded": False,
            "said": [f'tcp_tahoe: growth: must be floor or bsd, got "{value}"'],
            "registers": [],
        }
