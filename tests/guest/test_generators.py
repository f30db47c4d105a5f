"""Traffic besides unlimited data: films, random transfers, paced windows, UDP."""

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from capture_analysis.columns import IntArray
from support.running import SMALL, measure, write_experiment
from support.runs import carry_out

from twoway.contract.judge import Verdict
from twoway.contract.network import CONNECT_NS, START_NS
from twoway.contract.plan import read_plan
from twoway.description.point import Point
from twoway.description.traffic.film import Film
from twoway.description.traffic.transfers import Transfers
from twoway.measure.analysis import Analysis
from twoway.measure.document import compute
from twoway.measure.fidelity import fidelity
from twoway.measure.flight import most_in_flight
from twoway.plan.plan import build_plan
from twoway.runs.points import load_point

pytestmark = pytest.mark.usefixtures("guest")


FILM = {"mean_mbit": 10, "frames_per_s": 25}
TRANSFERS = {"per_s": 20, "mean_bytes": 50_000}


def point(tmp_path: Path, flow: dict[str, Any] | None = None, **more: Any) -> Point:
    """Make SMALL with other fields, and other fields of its only flow."""
    only = {**SMALL["flows"][0], **(flow or {})}
    document = {**SMALL, "flows": [only], "duration_s": 1, "warm_up_s": 0, **more}
    return load_point(str(write_experiment(tmp_path, document)))


def ends(of: Point, kind: str) -> list[list[str]]:
    """Return the words of each of the plan's lines that send, or receive, a connection's data."""
    lines = [line.split() for program in build_plan(of).sources for line in program.stdin]
    return [words for words in lines if words[0] == kind]


def option(words: list[str], name: str) -> str:
    """Return the word after an option."""
    return words[words.index(name) + 1]


def test_each_transfer_is_a_connection(tmp_path: Path) -> None:
    """Transfers are numbered connections with their own starts and sizes."""
    of = point(tmp_path, {"transfers": TRANSFERS, "start_s": 0.25})
    arrivals = Transfers.model_validate(TRANSFERS).arrivals(
        of.experiment.span(of.experiment.flows[0])
    )
    assert [c.name for c in of.connections] == [f"left-{n + 1}" for n in range(len(arrivals))]
    for command, (after_s, payload_bytes) in zip(ends(of, "send"), arrivals, strict=True):
        assert option(command, "--bytes") == str(payload_bytes)
        start_ns = START_NS + round((0.25 + after_s) * 1e9)
        assert option(command, "--start-at") == str(start_ns)
        assert option(command, "--connect-at") == str(CONNECT_NS)


def test_connecting_at_the_start(tmp_path: Path) -> None:
    """With connect: at-start a source connects when its data begins, not before all traffic."""
    flow = {"connect": "at-start", "start_s": 0.5}
    (command,) = ends(point(tmp_path, flow), "send")
    assert option(command, "--connect-at") == option(command, "--start-at")


def test_send_buffer_holds_fasts_window(tmp_path: Path) -> None:
    """A send buffer has room for FAST's largest flight: the path and all alphas.

    131 Mbit/s and 16.832 ms hold 31 frames of 9180 bytes; each takes 16 KiB and a page.
    """
    flow = {"congestion": "fast", "alpha_packets": 300, "window_packets": None}
    (command,) = ends(point(tmp_path, flow), "send")
    assert option(command, "--send-buffer") == str((300 + 31) * (16384 + 4096))


def long_path(tmp_path: Path, flow: dict[str, Any], rate_mbit: int = 100, **more: Any) -> Point:
    """Make a flow over 100 Mbit/s and 100 ms, with a queue of the path's capacity, 833 packets."""
    link = {"rate_mbit": rate_mbit, "delay_ms": 50, "queue_packets": 833}
    directions = {"forward": link, "reverse": link}
    profile = {"schema": 1, "title": "A long, fast link", "directions": directions}
    (tmp_path / "long.yml").write_text(yaml.safe_dump(profile), "utf-8")
    only = {"congestion": "bbr", "window_packets": None, **flow}
    fields = {"profile": "long", "stack": {}, "duration_s": 4, "warm_up_s": 2, **more}
    return point(tmp_path, only, **fields)


def test_the_buffer_follows_the_window(tmp_path: Path) -> None:
    """On a long path a source never waits for its buffer, and fills the link."""
    of = long_path(tmp_path, {})
    folder = carry_out(of, tmp_path / "results")
    said = json.loads((folder / "traffic/left-source.json").read_text())
    assert (said["sndbuf_limited_us"], said["rwnd_limited_us"]) == (0, 0)
    analysis = Analysis(folder)
    assert (most_in_flight(analysis.run, analysis.connections["left"]) or 0) > 833
    assert (compute(analysis).metrics["utilisation.forward"].value or 0) > 0.95


@pytest.mark.parametrize(
    ("rate_mbit", "stack", "expected"),
    [
        (100, {}, 1 << 24),
        # A round trip holds 8367 packets: 100 ms, plus 0.4 ms behind 833 ACKs; the queue holds 833.
        (1000, {}, 2 * (8367 + 833) * 1500),
        (1000, {"receive_window_packets": 100}, 1 << 24),
        (1000, {"receive_buffer_bytes": 100_000}, 100_000),
    ],
)
def test_the_receive_buffer_follows_the_path(
    tmp_path: Path, rate_mbit: int, stack: dict[str, Any], expected: int
) -> None:
    """A sink offers 16 MiB, or twice a longer path's capacity; the file may set another size."""
    of = long_path(tmp_path, {}, rate_mbit, stack=stack)
    (sink,) = ends(of, "receive")
    assert option(sink, "--receive-buffer") == str(expected)
    (most,) = {
        s.sysctls.get("net.core.rmem_max") for s in build_plan(of).setup if s.kind == "set_sysctls"
    } - {None}
    assert most == max(2 * expected, 1 << 25)


def test_a_constant_window_has_its_receive_buffer(tmp_path: Path) -> None:
    """A fixed window that is too large for 16 MiB gets twice its bytes."""
    (sink,) = ends(point(tmp_path, {"window_packets": 1000}), "receive")
    assert option(sink, "--receive-buffer") == str(2 * 1000 * 9180)


def test_film_on_the_wire(tmp_path: Path) -> None:
    """A film's frames leave whole, 40 ms apart, and all of its bytes arrive."""
    film = {"congestion": "fixed", "window_packets": 500, "film": FILM}
    each = point(tmp_path, film)
    folder = carry_out(each, tmp_path / "results")
    analysis = Analysis(folder)
    assert compute(analysis).sound
    view = analysis.connections["left"]
    data = view.sent.data()
    data = data.where(data.time_ns >= analysis.run.start_ns)
    frame = (data.time_ns - analysis.run.start_ns) // 40_000_000
    sent = np.bincount(frame, weights=data.payload_bytes)
    span = each.experiment.span(each.experiment.flows[0])
    assert sent.tolist() == Film.model_validate(FILM).frame_bytes(span)


def test_transfers_end(tmp_path: Path) -> None:
    """Each transfer's receiver gets the payload exactly once, after one byte of set-up."""
    of = point(tmp_path, {"transfers": TRANSFERS})
    folder = carry_out(of, tmp_path / "results")
    analysis = Analysis(folder)
    assert compute(analysis).sound
    arrivals = Transfers.model_validate(TRANSFERS).arrivals(
        of.experiment.span(of.experiment.flows[0])
    )
    got = [v.arrived.data().payload_bytes.sum() - 1 for v in analysis.connections.values()]
    ended = [after_s < 0.8 for after_s, _ in arrivals]
    assert sum(ended) >= 10
    for size, (_, payload_bytes), done in zip(got, arrivals, ended, strict=True):
        assert size == payload_bytes or not done


def test_pacing_spreads_windows(tmp_path: Path) -> None:
    """Over a path longer than its queues, unpaced FAST leaves the bottleneck idle at times.

    By the closed form of `theory.fast.bunched` it is 91.4 % full in bunches.
    """
    shares = []
    ends = ({"from": "h1", "to": "h2"}, {"from": "h2", "to": "h1"})
    flows = [
        {"name": f"to-{way['to']}", **way, "congestion": "fast", "alpha_packets": alpha}
        for way, alpha in zip(ends, (140, 10), strict=True)
    ]
    for pacing in (False, True):
        fields = {"stack": {"mtu_bytes": 1000, "pacing": pacing}, "flows": flows}
        link = {"profile": "fast-100-10mbit", "duration_s": 4, "warm_up_s": 2}
        of = load_point(str(write_experiment(tmp_path, {**SMALL, **link, **fields})))
        found = compute(Analysis(carry_out(of, tmp_path / "results")))
        assert found.sound, found.fidelity
        shares.append(found.metrics["utilisation.reverse"].value)
    assert shares == pytest.approx([0.914, 1], abs=0.02)
    assert shares[1] == pytest.approx(1, abs=1e-6)


def test_a_flow_that_stops(tmp_path: Path) -> None:
    """A flow sends nothing new after its `stop_s`; another continues, and every check holds."""
    stopping, going = SMALL["flows"]
    flows = [{**stopping, "start_s": 0.2, "stop_s": 0.6}, going]
    of = load_point(str(write_experiment(tmp_path, {**SMALL, "warm_up_s": 0.1, "flows": flows})))
    analysis = Analysis(carry_out(of, tmp_path / "results"))
    stops, goes = (analysis.connections[name] for name in ("left", "right"))
    assert 0.59e9 < int(stops.sent.data().time_ns.max()) - START_NS <= 0.6e9
    assert int(goes.sent.data().time_ns.max()) - START_NS > 1.49e9
    assert {row.verdict for row in compute(analysis).fidelity} == {Verdict.PASS}


# UDP sources send packets at their times, and each packet is counted once.

UDP = {"name": "udp", "from": "h1", "to": "h2", "rate_mbit": 8}
INTERVAL_NS = 1_000_000
# Largest shift of a departure by other work of the guest at the same instant.
LATE_NS = 5000


def _run(folder: Path, name: str, **fields: Any) -> Path:
    where = folder / name
    where.mkdir()
    document = {**SMALL, "flows": [], "datagrams": [{**UDP, **fields}]}
    return carry_out(write_experiment(where, document), where / "results")


def _sent_ns(run: Path) -> IntArray:
    """Return when packets left, in ns after the start of traffic."""
    analysis = Analysis(run)
    return analysis.datagrams["udp"].sent.time_ns - analysis.run.start_ns


def test_a_constant_rate(tmp_path: Path) -> None:
    """Packets leave at equal intervals, from start to stop."""
    found = _sent_ns(_run(tmp_path, "one", start_s=0.25, stop_s=0.75))
    assert len(found) == 500
    assert np.abs(found - 250_000_000 - INTERVAL_NS * np.arange(500)).max() < LATE_NS


def test_a_poisson_process(tmp_path: Path) -> None:
    """Intervals are exponential; one seed repeats every byte, another shares no departure time."""
    first, again, other = (
        _run(tmp_path, name, arrivals="poisson", seed=seed, rate_mbit=40)
        for name, seed in (("first", 3), ("again", 3), ("other", 4))
    )
    digests = [
        [hashlib.sha256(path.read_bytes()).digest() for path in sorted((run / "pcap").iterdir())]
        for run in (first, again)
    ]
    assert digests[0] == digests[1]
    gaps = np.diff(_sent_ns(first))
    count = len(gaps)
    assert gaps.mean() == pytest.approx(INTERVAL_NS / 5, rel=4 / np.sqrt(count))
    assert gaps.std() == pytest.approx(gaps.mean(), rel=4 * np.sqrt(2 / count))
    assert not np.isin(_sent_ns(other), _sent_ns(first)).any()


def test_datagrams_pause_between_bursts(tmp_path: Path) -> None:
    """Within an `on` period packets leave at equal intervals; pauses separate these periods."""
    pauses = {"mean_on_s": 0.05, "mean_off_s": 0.05}
    gaps = np.diff(_sent_ns(_run(tmp_path, "one", on_off=pauses, rate_mbit=80)))
    steady = np.abs(gaps - INTERVAL_NS // 10) < LATE_NS
    assert (gaps[~steady] > INTERVAL_NS // 10).all()
    assert 5 <= np.count_nonzero(~steady) <= 35
    assert np.count_nonzero(steady) > 2000


def test_packets_of_a_frame_leave_together(tmp_path: Path) -> None:
    """Each frame's packets leave back to back, one frame interval after the frame before."""
    run = _run(tmp_path, "one", film={"frames_per_s": 20}, rate_mbit=8)
    source = next(each for each in read_plan(run).sources if each.name == "source-udp")
    frames = [int(number) for number in source.run[source.run.index("--frames") + 1].split(",")]
    began_ns = np.repeat(50_000_000 * np.arange(len(frames)), frames)
    late_ns = _sent_ns(run) - began_ns
    assert len(late_ns) == sum(frames) == 1500
    assert late_ns.min() >= 0
    assert late_ns.max() < max(frames) * LATE_NS


def test_udp_beside_tcp(tmp_path: Path) -> None:
    """Beside two-way TCP, UDP has its own metrics, changes no others, and every check holds."""
    path = write_experiment(tmp_path, {**SMALL, "datagrams": [UDP]})
    document = measure(path, tmp_path / "results")
    assert document["found"] == []
    assert document["metrics"]["datagram_loss.udp"]["value"] == 0
    assert document["metrics"]["datagram_delay.udp"]["value"] > 0.0084
    assert all(row["verdict"] == "pass" for row in document["fidelity"])


@pytest.mark.parametrize("capture", ["kernel", "tcpdump"])
def test_a_backlog_that_outlasts_the_run(capture: str, tmp_path: Path) -> None:
    """With minutes of packets queued at the end, all captures are consistent.

    The packets' receiver has ended, and its host answers some of them with ICMP.
    """
    document = {
        **SMALL,
        "profile": "zhang-10ms",
        "stack": {"mtu_bytes": 1500},
        "flows": [],
        "datagrams": [{**UDP, "rate_mbit": 4}],
        "capture": capture,
    }
    run = carry_out(write_experiment(tmp_path, document), tmp_path / "results")
    analysis = Analysis(run)
    waiting = analysis.queues["forward"].all_packets.count_at(np.array([analysis.run.stop_ns]))
    assert int(waiting[0]) > 700
    assert {row.verdict for row in fidelity(analysis)} == {Verdict.PASS}
