"""Interventions change the fate of one packet, and `twoway why` finds the packet that decided."""

import json
import os
import re
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from support.guides import carry_out_lines, copy_listings, listing
from support.running import FLOW, LINUX, ROOT, write_experiment
from support.runs import carry_out
from support.warm_command import in_this_process, twoway
from zstandard import ZstdDecompressor

from twoway.contract.files import open_run_file
from twoway.contract.judge import Verdict
from twoway.contract.network import START_NS
from twoway.errors import RunError
from twoway.manifest import Intervened, read_manifest
from twoway.measure.analysis import Analysis
from twoway.measure.document import compute
from twoway.report.comparing import relative
from twoway.runs.interventions import refuse_difference
from twoway.runs.points import load_point
from twoway.sweeps import why, workers
from twoway.sweeps.events import events_of

pytestmark = pytest.mark.usefixtures("guest")


# Interventions change the fate of the packet that they name, and nothing before it.

# A download that fills a queue of 20 packets while it starts.
LINE = {"rate_mbit": 8, "queue_packets": 20, "delay_ms": 8}
FILLS: dict[str, Any] = {**LINUX, "profile": {"directions": {"forward": LINE, "reverse": LINE}}}
# The same with marks instead.
CODEL = {**LINE, "queue_packets": 200, "aqm": "codel", "ecn": True}
MARKS = {
    **FILLS,
    "profile": {"directions": {"forward": CODEL, "reverse": LINE}},
    "stack": {"preset": "linux", "ecn": True},
}


def _run(folder: Path, document: dict[str, Any], *interventions: dict[str, Any]) -> Analysis:
    path = write_experiment(folder, document | {"interventions": [*interventions]})
    return Analysis(carry_out(path, folder / "results"))


def _did(analysis: Analysis) -> Intervened:
    did = analysis.run.manifest.interventions
    assert did is not None
    return did


def _sequences(analysis: Analysis, packets: Any) -> list[int]:
    found, _ = relative(packets, analysis.run.flows)
    return [int(each) for each in found]


def _marked(analysis: Analysis) -> list[tuple[int, int]]:
    """List time and sequence number of the packets that leave the queue with a mark."""
    with open_run_file(analysis.run.folder, "pcap/r1-eth1.pcap.zst") as file:
        rest = ZstdDecompressor().stream_reader(file).read()[24:]
    found, first = [], None
    while rest:
        s, ns, size, _ = struct.unpack_from("<IIII", rest)
        frame, rest = rest[16 : 16 + size], rest[16 + size :]
        (sequence,) = struct.unpack_from(">I", frame, 38)
        first = sequence if first is None else first
        if frame[15] & 3 == 3:
            found.append((s * 10**9 + ns, sequence - first))
    return found


def test_a_queue_keeps_the_packet_that_it_would_drop(tmp_path: Path) -> None:
    """The packet that a full queue drops first is in it, one above the limit, and arrives."""
    before = _run(tmp_path, FILLS)
    lost = before.list_lost(before.connections["one"])
    sequence, at_ns = _sequences(before, lost)[0], int(lost.time_ns[0])
    after = _run(tmp_path, FILLS, {"keep": {"flow": "one", "sequence": sequence}})
    assert _did(after).equal_until_ns == at_ns
    now_lost = after.list_lost(after.connections["one"])
    assert sequence not in _sequences(after, now_lost)
    assert int(now_lost.time_ns.min(initial=at_ns + 1)) > at_ns
    assert after.queues["forward"].all_packets.peak(at_ns - 1, at_ns + 1) == 21
    assert {row.verdict for row in compute(after).fidelity} == {Verdict.PASS}
    refuse_difference(before.run.folder, after.run.folder, at_ns)
    with pytest.raises(RunError, match=r"differs from the original's before the first"):
        refuse_difference(before.run.folder, after.run.folder, at_ns + 10**9)


def test_all_losses_of_a_time_are_averted_together(tmp_path: Path) -> None:
    """`keep` until a time lets every packet into the queue until then, and no later one."""
    after = _run(tmp_path, FILLS, {"keep": {"queue": "forward", "until_s": 1}})
    lost_ns = after.list_lost(after.connections["one"]).time_ns
    assert lost_ns.min(initial=START_NS + 10**9) >= START_NS + 10**9
    assert _did(after).happened[0].packets > 1


def test_one_packet_is_dropped(tmp_path: Path) -> None:
    """A queue that is never full drops the tenth packet of a flow, and only that."""
    wide = {**LINE, "queue_packets": 2000}
    document = {**FILLS, "profile": {"directions": {"forward": wide, "reverse": LINE}}}
    after = _run(tmp_path, document, {"drop": {"flow": "one", "packet": 10}})
    (at_ns,) = after.drops(after.queues["forward"]).time_ns
    assert at_ns == _did(after).equal_until_ns
    entered = after.queues["forward"].passed.packets.time_ns
    assert [*entered[:10]] == [*entered[:9], at_ns]
    assert {row.verdict for row in compute(after).fidelity} == {Verdict.PASS}


def test_one_packet_gets_or_loses_a_mark(tmp_path: Path) -> None:
    """`mark` marks a packet at a drop-tail queue, and `unmark` takes away CoDel's first mark."""
    document = {**FILLS, "stack": MARKS["stack"]}
    after = _run(tmp_path, document, {"mark": {"flow": "one", "from_s": 0.2}})
    assert len(_marked(after)) == 1
    before = _run(tmp_path, MARKS)
    (at_ns, sequence), *_ = _marked(before)
    without = _run(tmp_path, MARKS, {"unmark": {"flow": "one", "sequence": sequence}})
    assert _did(without).equal_until_ns == at_ns
    assert min(_marked(without)) > (at_ns, sequence)


def test_a_link_delivers_one_packet_late_or_twice(tmp_path: Path) -> None:
    """A packet comes 7 ms later than without the intervention, or twice, or behind five others."""
    before = _run(tmp_path, FILLS)
    came = before.connections["one"].arrived.data()
    sequence = _sequences(before, came)[9]
    named = {"flow": "one", "sequence": sequence}
    late = _run(tmp_path, FILLS, {"delay": {**named, "by_ms": 7}})
    arrived = late.connections["one"].arrived.data()
    row = _sequences(late, arrived).index(sequence)
    # The worker that holds the packet spends less than a microsecond.
    assert arrived.time_ns[row] - came.time_ns[9] == pytest.approx(7e6, abs=1e3)
    twice = _run(tmp_path, FILLS, {"duplicate": named})
    arrived = twice.connections["one"].arrived.data()
    assert _sequences(twice, arrived).count(sequence) == 2
    overtaken = _run(tmp_path, FILLS, {"reorder": {**named, "by_packets": 5}})
    arrived = overtaken.connections["one"].arrived.data()
    row = _sequences(overtaken, arrived).index(sequence)
    assert _sequences(overtaken, arrived)[row - 5 : row] == _sequences(before, came)[10:15]
    for after in (late, twice, overtaken):
        assert _did(after).equal_until_ns < came.time_ns[9]
        assert {row.verdict for row in compute(after).fidelity} == {Verdict.PASS}


@pytest.mark.parametrize(
    "forward",
    [{**CODEL, "ecn": False}, {**LINE, "queue_packets": 200, "loss": {"percent": 1}}],
    ids=["codel", "loss"],
)
def test_an_event_of_a_law_or_of_chance_is_averted(tmp_path: Path, forward: Any) -> None:
    """CoDel, and a link with random losses, pass on the packet that they would drop first."""
    document = {**FILLS, "profile": {"directions": {"forward": forward, "reverse": LINE}}}
    before = _run(tmp_path, document)
    events, _ = events_of(before, load_point(str(tmp_path / "small.yml")))
    first = next(event for event in events if event.place)
    after = _run(tmp_path, document, *first.interventions)
    view = after.connections["one"]
    sequence = first.interventions[0]["keep"]["sequence"]
    arrived = _sequences(after, view.arrived.data())
    sent = _sequences(after, view.sent.data())
    assert arrived.count(sequence) == sent.count(sequence) == 1
    assert not _marked(after)
    again = _sequences(before, before.connections["one"].sent.data())
    assert again.count(sequence) == 2


@pytest.mark.parametrize(
    ("intervention", "problem"),
    [
        (
            {"reorder": {"flow": "one", "packet": 50, "by_packets": 9999}},
            "interventions.0.reorder: packet 50 of one: fewer packets come to the link after it",
        ),
        (
            {"keep": {"flow": "one", "sequence": 3}},
            "interventions.0.keep: the first packet of one with the sequence number 3 does not",
        ),
        (
            {"drop": {"flow": "one", "packet": 10**6}},
            "interventions.0.drop: packet 1000000 of one does not come to the queue: ",
        ),
        (
            {"keep": {"flow": "one"}},
            "interventions.0.keep: the first packet of one: the queue does not drop it, or drops",
        ),
        (
            {"mark": {"flow": "one"}},
            "interventions.0.mark: the first packet of one: it has a mark already, its sender does",
        ),
    ],
)
def test_a_packet_that_is_not_there_has_a_sentence(
    tmp_path: Path, intervention: dict[str, Any], problem: str
) -> None:
    """A run whose intervention does not happen fails, and says why."""
    with pytest.raises(RunError) as failure:
        _run(tmp_path, {**FILLS, "duration_s": 1.1}, intervention)
    assert str(failure.value).startswith(problem)


def test_two_interventions_on_one_packet_have_a_sentence(tmp_path: Path) -> None:
    """A link carries out the first of two interventions on a packet, and the run says so."""
    both = ({"delay": {"flow": "one", "by_ms": 1}}, {"duplicate": {"flow": "one"}})
    with pytest.raises(RunError, match=r"^interventions.1.duplicate: .* above has this packet"):
        _run(tmp_path, {**FILLS, "duration_s": 1.1}, *both)


def test_links_flows_and_windows_change_at_their_times(tmp_path: Path) -> None:
    """A rate, a delay and a window change, a flow starts and another stops: each when it is asked.

    Before the first of them the captures are those of the run without interventions.
    """
    document = {**FILLS, "flows": [FLOW, {**FLOW, "name": "two", "start_s": 1.7}]}
    after = _run(
        tmp_path,
        document,
        {"start": {"flow": "two", "at_s": 0.4}},
        {"stop": {"flow": "two", "at_s": 0.8}},
        {"link": {"direction": "forward", "rate_mbit": 3, "delay_ms": 30, "at_s": 1.2}},
        {"window": {"flow": "one", "packets": 2, "at_s": 1.5}},
    )
    assert _did(after).equal_until_ns == START_NS + 400_000_000
    one, two = (after.connections[name] for name in ("one", "two"))
    times_s = (two.sent.data().time_ns - START_NS) / 1e9
    assert 0.4 <= times_s.min() < 0.45  # its handshake comes first
    assert 0.7 < times_s.max() < 0.8
    left_ns = np.sort(after.queues["forward"].passed.left_ns)
    late_ns = left_ns[left_ns > START_NS + 1_250_000_000][:20]
    assert {*np.diff(late_ns).tolist()} == {1514 * 8 * 1000 // 3, 1514 * 8 * 1000 // 3 + 1}
    came_ns = one.arrived.data().time_ns - 30_000_000
    assert [*came_ns[came_ns > START_NS + 1_250_000_000][:20]] == pytest.approx([*late_ns], abs=1e3)
    (changed_ns,) = (e.time_ns for e in _did(after).happened if e.what.startswith("window 2 of"))
    sent_ns = one.sent.data().time_ns
    # ACKs come each 8 ms; each shrinks the flight by two segments, and the window grows from 2.
    assert sent_ns[sent_ns > changed_ns][0] - changed_ns > 20_000_000


@pytest.mark.parametrize(
    ("link", "proven"), [({**LINE, "aqm": "codel"}, True), ({**LINE, "rate_mbit": 7}, False)]
)
def test_tc_changes_a_rate(tmp_path: Path, link: dict[str, Any], proven: bool) -> None:
    """HTB has its new rate at once; netem has it for later packets, whose times are not proven."""
    links = {"directions": {"forward": link, "reverse": LINE}}
    change = {"link": {"direction": "forward", "rate_mbit": 3, "at_s": 1}}
    after = _run(tmp_path, {**FILLS, "profile": links}, change)
    left_ns = np.sort(after.queues["forward"].passed.left_ns)
    late_ns = left_ns[left_ns > START_NS + 1_300_000_000][:10]
    assert np.diff(late_ns) == pytest.approx(1514 * 8e3 / 3, abs=2)
    failed = {row.verdict for row in compute(after).fidelity} - {Verdict.PASS}
    assert failed == (set() if proven else {Verdict.NOT_PROVEN})


def test_a_sysctl_changes_at_its_time(tmp_path: Path) -> None:
    """A host's sysctl changes during the traffic; the command and the page say when."""
    change = {"host": "h1", "at_s": 1.2, "sysctls": {"net.ipv4.tcp_reordering": 9}}
    path = write_experiment(tmp_path, FILLS | {"interventions": [{"set": change}]})
    done = twoway("run", path, "--results", tmp_path / "results")
    said = done.stderr.splitlines()
    assert done.returncode == 0
    assert "at 1.200000000 s: set net.ipv4.tcp_reordering=9 at h1" in said
    runs = sorted((tmp_path / "results/small").iterdir())
    did = read_manifest(runs[-1]).interventions
    assert did is not None
    assert did.original == runs[0].name
    page = (runs[-1] / "report.html").read_text()
    assert "Before 1.200000000 s all captures equal those" in page
    assert "twoway trace small --from 1 --to" in page
    assert "twoway why small" not in page  # which takes runs without interventions
    twoway("report", runs[0])
    assert "twoway why small" in (runs[0] / "report.html").read_text()


# `twoway why` names the loss that decided a result, where that loss is known.

TAIL: dict[str, Any] = yaml.safe_load(listing("why.md", "answer.yml"))
METRIC = "completion_time.answer"


def _ask(folder: Path, *words: str) -> Any:
    """Run `twoway why`, which makes its further runs in its own process, or copies kept ones."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(workers, "workers", in_this_process)
        patch.setattr(
            why, "run_experiment", lambda of, on, to, beside: carry_out(of, to, on, beside)
        )
        return _why(folder, *words)


def _why(folder: Path, *words: str) -> Any:
    return twoway("why", "small.yml", *words, "--results", folder / "results", cwd=folder)


def test_the_loss_of_the_last_packet_costs_a_probe(tmp_path: Path) -> None:
    """Without the only loss, an answer is complete after a round trip and its own transmission."""
    path = write_experiment(tmp_path, TAIL)
    folder = carry_out(path, tmp_path / "results")
    done = _why(tmp_path, "--metric", METRIC, "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    (event,) = found["events"]
    # The handshake, an ACK and ten segments in frames on the link, and its delay.
    expected_s = 2 * (0.02 + 74e-6) + (66 + 67 + 9 * 1514) / 1e6 + 0.02
    assert event["value"] == pytest.approx(expected_s, abs=3e-6)
    assert event["effect"] == event["value"] - found["value"] < -0.04
    assert event["segment"] == 9
    (sentence,) = found["sentences"]
    assert sentence == (
        f"At 0.040 s the queue forward dropped segment 9 of answer. Without that drop {METRIC} is "
        f"{event['value']:.4g} instead of {found['value']:.4g} s."
    )
    assert sentence in (folder / "why.html").read_text()
    assert sentence in (ROOT / "docs/guides/why.md").read_text()
    # The intervention in the page, in a file, makes the same run.
    asked = event["interventions"]
    anew = carry_out(write_experiment(tmp_path, TAIL | {"interventions": asked}), tmp_path / "r")
    table = twoway("report", anew, "--json").stdout
    assert json.loads(table)["metrics"][METRIC]["value"] == event["value"]


# The lost segment is the last of all: no later one shows the gap.
SILENT = {
    **TAIL,
    "stack": {"preset": "linux", "tail_loss_probe": False},
    "flows": [{**TAIL["flows"][0], "transfer": {"bytes": 13032}}],
}


def test_marks_and_timeouts_are_events(tmp_path: Path) -> None:
    """A loss names its time-out, and each mark of CoDel can be averted."""
    analysis = Analysis(carry_out(write_experiment(tmp_path, SILENT), tmp_path / "results"))
    ((event,), elsewhere) = events_of(analysis, load_point(str(tmp_path / "small.yml")))
    again_ns = analysis.connections["answer"].sent.data().time_ns[-1]
    assert event.timeout_s == analysis.run.seconds(again_ns)
    ends = f"which ends in a time-out at {event.timeout_s:.3f} s"
    assert event.text == f"forward dropped segment 9 of answer, {ends}"
    assert not elsewhere
    other = tmp_path / "marks"
    other.mkdir()
    carry_out(write_experiment(other, MARKS), other / "results")
    done = _ask(other, "--most", "1", "--metric", "queue_mean.forward", "--json")
    assert done.returncode == 0, done.stderr
    (event,) = json.loads(done.stdout)["events"]
    assert event["verb"] == "marked"
    assert event["effect"] > 0


def test_losses_of_a_full_queue_of_a_manager_and_of_a_policer_are_counted(tmp_path: Path) -> None:
    """CoDel drops a packet with ECN only when its queue is full, which no intervention averts."""
    full = {**CODEL, "queue_packets": 12}
    policed = {**LINE, "policer": {"rate_mbit": 4, "burst_bytes": 15000}, "queue_packets": 200}
    for name, forward, ecn in (("full", full, True), ("policed", policed, False)):
        folder = tmp_path / name
        folder.mkdir()
        links = {"profile": {"directions": {"forward": forward, "reverse": LINE}}}
        document = MARKS | links | {"stack": {"preset": "linux", "ecn": ecn}}
        path = write_experiment(folder, document)
        analysis = Analysis(carry_out(path, folder / "results"))
        found, elsewhere = events_of(analysis, load_point(str(path)))
        lost = len(analysis.list_lost(analysis.connections["one"]))
        drops = sum(each.verb == "dropped" for each in found)
        assert elsewhere == lost - drops > 0
        assert {each.packets for each in found if each.verb == "dropped"} <= {1}


def test_a_burst_that_a_full_queue_drops_all_the_same_has_no_effect(tmp_path: Path) -> None:
    """CoDel passes on what its law would drop, and its full queue goes on to drop the others."""
    full = {**LINE, "queue_packets": 12, "delay_ms": 10, "aqm": "codel"}
    back = {**full, "queue_packets": 1000, "aqm": "drop-tail"}
    document = {**FILLS, "profile": {"directions": {"forward": full, "reverse": back}}}
    carry_out(write_experiment(tmp_path, document), tmp_path / "results")
    done = _ask(tmp_path, "--json", "--most", "2")
    assert done.returncode == 0, done.stderr
    bursts = [each for each in json.loads(done.stdout)["events"] if each["packets"] > 1]
    assert any("packets of that time all the same" in each["problem"] for each in bursts)
    assert {each["effect"] for each in bursts if each["problem"]} == {None}


def test_without_any_event_other_flows_are_the_events(tmp_path: Path) -> None:
    """Two windows without losses in both directions: alone, a flow gets more of its link."""
    flows: list[dict[str, Any]] = [
        {"name": name, "from": "h1", "to": "h2", "congestion": "fixed", "window_packets": 9}
        for name in ("one", "two")
    ]
    flows[1] |= {"from": "h2", "to": "h1", "start_s": 0.5}
    noise = {"name": "noise", "from": "h2", "to": "h1", "packet_bytes": 500, "rate_mbit": 0.1}
    document = {**FILLS, "stack": {"preset": "papers"}, "flows": flows, "warm_up_s": 1}
    carry_out(write_experiment(tmp_path, document | {"datagrams": [noise]}), tmp_path / "results")
    done = _ask(tmp_path, "--metric", "goodput.one", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    (first, second) = found["events"]
    assert first["effect"] > 0.2 * found["value"]
    assert (first["flow"], second["flow"]) == ("two", "noise")
    assert found["sentences"][0].startswith("At 0.500 s the flow two starts. Without that flow ")


def test_what_cannot_be_asked_has_a_sentence(tmp_path: Path) -> None:
    """An unknown metric, a changed experiment and a run with interventions are refused."""
    carry_out(write_experiment(tmp_path, TAIL), tmp_path / "results")
    done = _ask(tmp_path, "--metric", "completion_time.anser")
    assert done.returncode == 2
    assert 'no such metric; did you mean "completion_time.answer"?' in done.stderr
    write_experiment(tmp_path, {**TAIL, "duration_s": 1.5})
    done = _ask(tmp_path)
    assert done.returncode == 2
    assert (
        "the experiment, the kernel or the tools are not those of the run any more" in done.stderr
    )
    drop = [{"drop": {"flow": "answer"}}]
    carry_out(write_experiment(tmp_path, TAIL | {"interventions": drop}), tmp_path / "results")
    done = _ask(tmp_path)
    assert done.returncode == 2
    assert "has interventions" in done.stderr


# A program that sleeps for 3 s between two answers, and a reader that reads each 0.2 s.
SLEEPS = """
import socket, sys, time
if sys.argv[1:]:
    end = socket.create_connection(("h2", 5000))
    end.sendall(bytes(300_000))
    time.sleep(3)
    end.sendall(bytes(100_000))
    end.shutdown(socket.SHUT_WR)
    end.recv(1)
else:
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 60000)
    listener.bind(("", 5000))
    listener.listen()
    end, _ = listener.accept()
    while end.recv(65536):
        time.sleep(0.2)
"""


def test_a_sleep_and_a_shut_window_are_events(tmp_path: Path) -> None:
    """Without its sleep a program ends earlier; a receiver that reads has an open window."""
    (tmp_path / "sleeps.py").write_text(SLEEPS)
    program = {"files": ["sleeps.py"], "command": ["python3", "sleeps.py"]}
    document = {
        **LINUX,
        "flows": [],
        "programs": [
            {"name": "reader", "host": "h2", **program},
            {"name": "sender", "host": "h1", "start_s": 1, **program}
            | {"command": ["python3", "sleeps.py", "send"]},
        ],
        "duration_s": 7,
    }
    carry_out(write_experiment(tmp_path, document), tmp_path / "results")
    done = _ask(tmp_path, "--metric", "run_time.sender", "--json")
    assert done.returncode == 0, done.stderr
    usual = _ask(tmp_path, "--most", "1", "--json")
    assert json.loads(usual.stdout)["metric"] == "utilisation.forward", usual.stderr
    found = json.loads(done.stdout)
    pause, *shut = found["events"]
    assert pause["verb"] == "pauses"
    # The sleep begins when all data are with the kernel, and the pause when they have arrived.
    assert 0 < -pause["effect"] - pause["lasts_s"] + 0.2 < 0.4
    assert found["sentences"][0].startswith(f"At {pause['time_s']:.3f} s the flow h1:")
    assert {each["verb"] for each in shut} == {"has a shut window"}
    first = min(shut, key=lambda each: each["time_s"])
    path = write_experiment(tmp_path, document | {"interventions": first["interventions"]})
    (still, *_), _ = events_of(Analysis(carry_out(path, tmp_path / "r")), load_point(str(path)))
    assert still.time_s > first["time_s"] + first["lasts_s"]


# `twoway why A B` finds until when the parameter in which two runs differ decides.


def test_a_longer_queue_decides_until_the_loss(tmp_path: Path) -> None:
    """A place more in the queue decides until the packet comes that it is for, and not later."""
    short = {**TAIL, "duration_s": 0.2}
    forward = short["profile"]["directions"]["forward"]
    longer = {"forward": {**forward, "queue_packets": 11}, "reverse": forward}
    folders = [
        carry_out(write_experiment(tmp_path, document, name), tmp_path / "results")
        for name, document in (
            ("small", short),
            ("longer", {**short, "profile": {"directions": longer}}),
        )
    ]
    done = _ask(tmp_path, "longer.yml", "--metric", METRIC, "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    analysis = Analysis(folders[0])
    (lost_ns,) = analysis.list_lost(analysis.connections["answer"]).time_ns
    begin, end = found["step"]
    assert begin < analysis.run.seconds(lost_ns) <= end < begin + 0.002
    assert found["decides"]
    assert found["sentences"][1].startswith(f"queue_packets 11 decides until {begin:.4f} s: ")
    trace = f"twoway trace small.yml --from {max(0, begin - 0.02):.3f} --to {end + 0.02:.3f}"
    assert f"its packets: {trace} --results {tmp_path / 'results'}" in done.stderr


def test_runs_that_differ_in_more_than_one_parameter_are_refused(tmp_path: Path) -> None:
    """Two differences, and a parameter that cannot change during a run, have a sentence."""
    mss = {"preset": "linux", "mtu_bytes": 1400}
    for name, stack, duration_s in (("small", TAIL["stack"], 2), ("b", mss, 2), ("c", mss, 1.5)):
        document = {**TAIL, "stack": stack, "duration_s": duration_s}
        carry_out(write_experiment(tmp_path, document, name), tmp_path / "results")
    assert "small and c must differ in one parameter, and differ in " in _ask(tmp_path, "c").stderr
    assert "differ in experiment.stack.mtu_bytes, which cannot" in _ask(tmp_path, "b").stderr


# `twoway trace` shows an interval from inside the kernel, and changes no byte.


def _trace(folder: Path, document: dict[str, Any], start_s: float, stop_s: float) -> Any:
    """Run an experiment, or copy its kept run, and trace an interval; return run and answer."""
    run = carry_out(write_experiment(folder, document), folder / "results")
    between = ("--from", f"{start_s}", "--to", f"{stop_s}")
    done = twoway("trace", "small.yml", "--results", "results", "--json", *between, cwd=folder)
    assert done.returncode == 0, done.stderr
    return Analysis(run), json.loads(done.stdout)


def test_each_packet_of_an_interval_has_its_reason(tmp_path: Path) -> None:
    """Sends are those of the capture; a lost segment leaves again when an ACK asks for it."""
    analysis, found = _trace(tmp_path, TAIL, 0.0, 0.5)
    moments = found["moments"]
    sent = [m for m in moments if m["kind"] == "send" and m["where"] == "h1" and m["seq"]]
    view = analysis.connections["answer"]
    stamps = {analysis.run.seconds(ns) for ns in view.sent.data().time_ns.tolist()}
    assert {m["time_s"] for m in sent} == stamps
    (drop,) = (m for m in moments if m["kind"] == "drop")
    (again,) = (m for m in sent if m["again"])
    assert (drop["where"], drop["why"], drop["seq"]) == ("forward", "QDISC_DROP", again["seq"])
    assert (again["why"], again["socket"]["state"]) == ("a segment arrived", "Recovery")
    # The last byte waits for the window of ten, and an ACK makes room.
    whys = [m["why"] for m in sent if not m["again"]]
    assert whys == ["the application"] * 6 + ["a segment arrived"]
    assert max(m["queue"] or 0 for m in moments) == 10
    assert len(found["captures"]) == len(analysis.run.manifest.captures)
    assert "all 6 captures equal the run's to the byte: SHA-256 " in found["sentences"][0]
    assert found["captures"]["h2-eth0"] in (analysis.run.folder / "trace.html").read_text()


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"flows": [{**FLOW, "congestion": "bbr"}]}, "the pacing timer"),
        (
            {"interventions": [{"drop": {"flow": "one", "from_s": 0.3, "until_s": 0.6}}]},
            "time-out after ",
        ),
    ],
)
def test_timers_are_reasons(tmp_path: Path, changes: dict[str, Any], reason: str) -> None:
    """BBR's segments leave by its pacing timer, and those after an outage by a time-out."""
    _, found = _trace(tmp_path, FILLS | {"duration_s": 1.2} | changes, 0.0, 1.2)
    whys = [m["why"] for m in found["moments"] if m["kind"] == "send" and m["where"] == "h1"]
    assert any(why.startswith(reason) for why in whys)


def test_what_cannot_be_traced_has_a_sentence(tmp_path: Path) -> None:
    """An interval must lie in the traffic, and a run's file in the folder or on the line."""
    carry_out(write_experiment(tmp_path, TAIL), tmp_path / "results")
    words = ("--results", "results", "--from", "1.5", "--to", "2.5")
    done = twoway("trace", "small.yml", *words, cwd=tmp_path)
    assert done.returncode == 2
    assert "must be 0 <= --from < --to <= 2 s, the end of traffic; got 1.5 and 2.5" in done.stderr
    (tmp_path / "small.yml").rename(tmp_path / "moved.yml")
    done = twoway("trace", "small", *words, cwd=tmp_path)
    assert done.returncode == 2
    assert "small.yml, which this is a run of, is not in this folder" in done.stderr


@pytest.mark.long
@pytest.mark.parametrize("number", range(8))
def test_a_known_cause_is_found_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """Each command of the page on known causes prints the sentences beneath it."""
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    copy_listings("why-known.md", tmp_path, "zhang.yml", "beside.yml", "forgets.yml")
    copy_listings("own-control.md", tmp_path, "tcp_aimd.c")
    text = (ROOT / "docs/guides/why-known.md").read_text()
    shown = re.findall(r"```console\n(.*?)```.*?```text\n(.*?)```", text, re.DOTALL)
    assert len(shown) == 8
    before = shown[6][0].splitlines()[:-1] if number == 7 else []
    for line in [*before, *shown[number][0].splitlines()]:
        words = ["sh", "-c", line.removeprefix("$ ")]
        done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    assert {*shown[number][1].splitlines()} <= {*done.stdout.splitlines()}


@pytest.mark.long
def test_the_guide_is_carried_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each command of the guide ends well, in its order."""
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    text = listing("why.md", "answer.yml")
    (tmp_path / "answer.yml").write_text(text)
    (tmp_path / "longer.yml").write_text(text.replace("packets: 10}", "packets: 11}", 1))
    carry_out_lines("why.md", "twoway", tmp_path)
    assert (tmp_path / "like.yml").exists()
