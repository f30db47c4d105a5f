"""tcp_tahoe sends what 4.3BSD-Tahoe sends, segment by segment, on the real kernel."""

import json
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from support.guest.scripted_receiver import SCENARIOS, STEP_S, SYSCTLS
from support.guest.scripted_traces import Trace, play_scenarios
from support.guest.tahoe_metrics import CONTROLS, ENDINGS
from support.guest.tahoe_model import ModelPath
from support.running import ROOT, write_experiment
from support.runs import carry_out, kept_in_guest

from twoway.contract.network import START_NS
from twoway.description.point import find_source
from twoway.description.stack import Stack
from twoway.guest.cache import Guest
from twoway.measure.analysis import Analysis
from twoway.plan import personality
from twoway.theory.tahoe.network import Connection, Link, Network
from twoway.theory.tahoe.sender import ENDLESS, Tahoe
from twoway.theory.tahoe.timers import MS, BsdTimer, S

PAPERS = Stack(sack=False, rack=False, tail_loss_probe=False, spurious_timeout_detection=False)
RANDOM = [name for name in SCENARIOS if "random" in name]
NAMES = [name for name in SCENARIOS if name.startswith("tahoe") and name not in RANDOM]
BSD_TIMER = [name for name in NAMES if "timer=bsd" in SCENARIOS[name].parameters]


@pytest.fixture(scope="module")
def traces(guest: Guest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Trace]:
    """Return the real sender's actions in each scenario."""
    return play_scenarios(guest, tmp_path_factory.mktemp("guest") / "run", "tahoe")


@pytest.mark.parametrize("name", NAMES)
def test_trace_is_the_models(traces: dict[str, Trace], name: str) -> None:
    """Every segment, and every window and threshold between, equals the paper's sender's."""
    columns = ("event", "ack", "sent", "cwnd", "ssthresh")
    got = [tuple(step[column] for column in columns) for step in traces[name]]
    assert got == ModelPath(SCENARIOS[name]).run()


def test_random_losses(traces: dict[str, Trace]) -> None:
    """For random losses, segments and thresholds equal those of the paper's sender.

    cwnd differs: after a timeout the stack counts duplicates of segments sent since. That lowers
    the reported window, but changes nothing that is sent.
    """
    differ = []
    for name in RANDOM:
        got = [
            (each["event"], each["ack"], each["sent"], each["ssthresh"]) for each in traces[name]
        ]
        model = ModelPath(SCENARIOS[name]).run()
        if got != [(event, ack, sent, ssthresh) for event, ack, sent, _, ssthresh in model]:
            differ.append(name)
    assert differ == []


def test_second_loss_of_a_window(traces: dict[str, Trace]) -> None:
    """By the paper's footnote 9 a first loss halves ssthresh, and a second one sets it to 2."""
    trace = traces["tahoe: two in a row"]
    third_duplicate = next(i for i, step in enumerate(trace) if step["sent"] == [40])
    before, first = trace[third_duplicate - 3], trace[third_duplicate]
    # In slow start the 40th ACK sends segments 40 and 41, at a window of 41.
    assert (before["ack"], before["cwnd"], first["ssthresh"]) == (40, 41, 20)
    # Neither duplicates nor the ACK that fills the first hole send anything.
    timeout = next(i for i, step in enumerate(trace) if step["event"] == "timeout")
    assert all(step["sent"] == [] for step in trace[third_duplicate + 1 : timeout])
    filled, second = trace[timeout - 1], trace[timeout]
    assert (filled["ack"], filled["cwnd"], filled["ssthresh"]) == (41, 2, 20)
    assert (second["sent"], second["cwnd"], second["ssthresh"]) == ([41], 1, 2)


def test_waits_for_the_timer(traces: dict[str, Trace]) -> None:
    """Duplicate ACKs never make tahoe_rto retransmit; the third makes tahoe do so."""
    fast = [step["event"] for step in traces["tahoe: one loss in slow start"]]
    slow = traces["tahoe_rto: one loss"]
    assert "timeout" not in fast
    (timeout,) = [step for step in slow if step["event"] == "timeout"]
    assert (timeout["sent"], timeout["cwnd"], timeout["ssthresh"]) == ([40], 1, 20)
    duplicates = [step for step in slow if step["ack"] == 40 and step["sent"] == []]
    assert len(duplicates) == 40


@dataclass(frozen=True)
class Timeout:
    """A timeout in a trace: the timer's start, the model's expiry, and the real one.

    Attributes:
        woken: True if an ACK came after the start, so that the module could set the kernel's timer.
    """

    started_s: float
    due_s: float
    at_s: float
    woken: bool


def timeouts(trace: Trace) -> list[Timeout]:
    """Return the timeouts in the real sender's actions, and the model's times for BSD's timer."""
    timer, una, highest, started_ns, due_ns, woken = BsdTimer(), 0, 0, 0, 0, False
    found = []
    for step in trace:
        now_ns, ack, sent = round(step["at_s"] * S), step["ack"], step["sent"]
        if step["event"] == "timeout":
            found.append(Timeout(started_ns / S, due_ns / S, step["at_s"], woken))
            timer.timed_out()
        if ack > una:
            timer.note_acked(una, ack, highest, now_ns)
        started = ack > una or sent == [ack] or step["event"] != "ack"
        if started:
            started_ns, due_ns = now_ns, timer.expires(now_ns)
        woken = una < ack < highest or not started
        for segment in sent:
            if segment < highest:
                timer.retransmits(segment)
            else:
                timer.note_sent(segment, now_ns)
            highest = max(highest, segment + 1)
        una = ack
    return found


def late_ticks(guest: Guest) -> bool:
    """Tell whether the module cannot set the kernel's retransmission timer."""
    return guest.release.startswith("7.")


@pytest.mark.parametrize("name", BSD_TIMER)
def test_bsd_timer_fires_at_the_models_ticks(
    guest: Guest, traces: dict[str, Trace], name: str
) -> None:
    """Each timeout is at the model's tick, or later by the resolution of the kernel's timer wheel.

    The wheel is late by an eighth of the wait if the module could not set the timer, and always on
    newer kernels.
    """
    found = timeouts(traces[name])
    assert {each.woken for each in found} == {False, True}
    for each in found:
        told = each.woken and not late_ticks(guest)
        least = 0 if told else (each.due_s - each.started_s) / 8
        assert 0 <= each.at_s - each.due_s < least + 1.1 * STEP_S


def test_bsd_timer_follows_the_path(traces: dict[str, Trace]) -> None:
    """The least timeout is two ticks, doubled by a second timeout; a slow path has three ticks."""
    ticks = {
        name: [round(2 * (each.due_s - each.started_s // 0.5 * 0.5)) for each in timeouts(trace)]
        for name, trace in traces.items()
        if name in BSD_TIMER
    }
    assert ticks["tahoe: bsd timer, a fast path"] == [2, 4, 2]
    assert ticks["tahoe: bsd timer, a slow path"] == [4, 8, 5]


@pytest.mark.usefixtures("guest")
def test_bsd_timer_on_a_line(tmp_path: Path) -> None:
    """Two connections on the paper's link lose the model's packets at the model's times.

    At the start a timer fires for a segment without any acknowledgement since: at 1.52 s instead of
    1.5 s, by the kernel's timer wheel.
    """
    document = find_source("zhang-fig4-5").document
    kept = ("schema", "title", "summary", "topology", "profile", "stack", "flows", "warm_up_s")
    changed = {"duration_s": 500, "modules": {"tcp_tahoe": {"timer": "bsd"}}}
    path = write_experiment(tmp_path, {key: document[key] for key in kept} | changed)
    analysis = Analysis(carry_out(path, tmp_path / "results"))
    connections = [
        Connection(
            node,
            BsdTimer(),
            start_ns,
            Tahoe(1000, fast_retransmit=True, bsd=False, written=ENDLESS),
        )
        for node, start_ns in enumerate((0, S // 2))
    ]
    network = Network((Link(), Link()), connections, (0, 500 * S)).run()
    for view, direction in zip(analysis.queues.values(), network.directions, strict=True):
        drops = analysis.drops(view)
        modelled = np.array([time for time, _ in direction.drops])
        assert len(drops) == len(modelled) > 50
        assert np.all(drops.payload_bytes > 0)
        late = drops.time_ns - START_NS - modelled
        assert 0 <= late.min() <= late.max() <= 20 * MS
        assert late[modelled > 2 * S].max() < MS / 10


def test_growth_differs(traces: dict[str, Trace]) -> None:
    """The paper's 1/floor(w) adds one to the window per window of ACKs; BSD's rule takes longer."""
    floor, bsd = (
        [step["cwnd"] for step in traces[name] if step["ssthresh"] == 10]
        for name in ("tahoe: one loss in slow start", "tahoe: bsd growth")
    )
    first, later = floor.index(10), floor.index(11)
    assert later - first == 10
    assert bsd.index(11) - bsd.index(10) > 10


def test_thresholds_differ(traces: dict[str, Trace]) -> None:
    """If the window exceeds the receiver's 10 segments, the paper's threshold is 10, BSD's 5."""
    name = "a window that the receiver limits"
    paper, bsd = (traces[f"tahoe: {rule}{name}"][-1] for rule in ("", "bsd threshold, "))
    assert (paper["ssthresh"], bsd["ssthresh"]) == (10, 5)


@pytest.mark.slow
def test_scripted_stack_is_that_of_experiments() -> None:
    """The sender has the settings that an experiment on the papers' TCP gives its hosts."""
    wanted = personality.node_sysctls(PAPERS, 1 << 25, router=False)
    assert {name: wanted.get(name, value) for name, value in SYSCTLS.items()} == SYSCTLS
    assert personality.root_sysctls(1 << 25)["net.core.wmem_max"] == SYSCTLS["net.core.wmem_max"]


def test_no_trace_in_the_hosts_metrics(guest: Guest, tmp_path: Path) -> None:
    """With stock settings a flow leaves the host's metrics of its destination unchanged.

    Whichever end closes first, an unknown host stays unknown. Window, threshold and reordering are
    those of the reno flow that went there before, and so is the round trip, unless the sender
    acknowledges a FIN after its own was acknowledged: then it is removed. A flow of cubic starts
    with the reordering of any new host, and all flows have ended.
    """
    folder = tmp_path / "run"
    program = ROOT / "tests/support/guest/tahoe_metrics.py"
    kept_in_guest(guest, folder, program, modules="tcp_tahoe")
    rows = json.loads((folder / "metrics.json").read_text())
    assert {(row["control"], row["ending"]) for row in rows} == set(product(CONTROLS, ENDINGS))
    for row in rows:
        before = row["before"]
        assert {"ssthresh", "cwnd", "rtt"} <= set(before)
        if row["ending"] == "half":
            del before["rtt"]
        assert (row["fresh"], row["after"]) == ({}, before), row
        assert (row["open"], row["reordering"]) == ([], 3), row


def test_tcp_tahoe_checks_its_rule(guest: Guest, tmp_path: Path) -> None:
    """Either rule loads and registers both names; any other rule is refused with a sentence."""
    folder = tmp_path / "run"
    growths = ("growth=floor", "growth=bsd", "growth=fast", "growth=")
    starts = ("slow_start=bsd", "slow_start=late")
    thresholds = ("ssthresh=paper", "ssthresh=bsd", "ssthresh=half")
    timers = ("timer=linux", "timer=bsd", "timer=bsd4.3")
    program = ROOT / "tests/support/guest/load_modules.py"
    attempts = (*growths, *starts, *thresholds, *timers)
    kept_in_guest(guest, folder, program, "tcp_tahoe", *attempts, modules="tcp_tahoe")
    found = json.loads((folder / "loads.json").read_text())
    both = {"loaded": True, "said": [], "registers": ["tahoe", "tahoe_rto"]}
    assert found["growth=bsd"] == both
    assert found["growth=floor"]["registers"] == both["registers"]
    assert found["slow_start=bsd"] == both
    assert found["slow_start=late"]["said"] == [
        'tcp_tahoe: slow_start: must be paper or bsd, got "late"'
    ]
    assert found["ssthresh=paper"] == found["ssthresh=bsd"] == both
    assert found["ssthresh=half"]["said"] == [
        'tcp_tahoe: ssthresh: must be paper or bsd, got "half"'
    ]
    late = ["tcp_tahoe: timer: on this kernel bsd's ticks are up to an eighth of a wait late"]
    assert found["timer=linux"] == both
    assert found["timer=bsd"] == {**both, "said": late if late_ticks(guest) else []}
    assert found["timer=bsd4.3"]["said"] == ['tcp_tahoe: timer: must be linux or bsd, got "bsd4.3"']
    for value in ("fast", ""):
        assert found[f"growth={value}"] == {
            "loaded": False,
            "said": [f'tcp_tahoe: growth: must be floor or bsd, got "{value}"'],
            "registers": [],
        }
