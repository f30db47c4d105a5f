"""Socket options and qdiscs of the file act in the guest as Linux's."""

import json
from pathlib import Path
from typing import Any

import pytest
from capture_analysis.reading.capture import read_capture
from support.running import FLOW, LINUX, write_experiment
from support.runs import carry_out
from support.warm_command import twoway

from twoway.contract.metrics import Metrics
from twoway.manifest import read_manifest
from twoway.report.report import analyse_run

pytestmark = pytest.mark.usefixtures("guest")

BASE = LINUX | {"duration_s": 3}
PACED = {"socket": {"max_pacing_rate_mbit": 2}}


def run_with(folder: Path, socket: dict[str, Any], **fields: Any) -> Path:
    """Run the experiment with a flow that has options of its socket."""
    document = {**BASE, "flows": [{**FLOW, "socket": socket}], **fields}
    return carry_out(write_experiment(folder, document), folder / "results")


def goodput_mbit(run: Path, flow: str = "one") -> float:
    """Measure a flow's goodput."""
    analyse_run(run, page=False)
    metrics = Metrics.read(run / "metrics.json")
    assert metrics.sound
    value = metrics.metrics[f"goodput.{flow}"].value
    assert value is not None
    return value


def test_the_largest_segment(tmp_path: Path) -> None:
    """With TCP_MAXSEG of 536 no frame has more than its headers and 536 bytes."""
    run = run_with(tmp_path, {"mss_bytes": 536})
    packets, _ = read_capture(run / "pcap/h1-eth0.pcap.zst", every_protocol=True)
    assert max(packets.frame_bytes) == 14 + 40 + 536


@pytest.mark.parametrize(
    ("flow", "hosts"),
    [
        (PACED, {}),
        (PACED | {"congestion": "fixed", "window_packets": 40}, {}),
        (PACED | {"congestion": "tahoe"}, {}),
        (PACED, {"h1": {"qdisc": "fq"}}),
        ({}, {"h1": {"qdisc": {"tc": "fq maxrate 2mbit"}}}),
    ],
)
def test_pacing_by_socket_and_by_qdisc(
    tmp_path: Path, flow: dict[str, Any], hosts: dict[str, Any]
) -> None:
    """SO_MAX_PACING_RATE, and fq's maxrate, hold a flow to 2 Mbit/s and a segment, in 2 s."""
    rate = goodput_mbit(run_with(tmp_path, {}, flows=[FLOW | flow], hosts=hosts))
    assert 1.8 < rate < 2 + 1460 * 8e-6 / 2


@pytest.mark.parametrize("hosts", [{}, {"h2": {"gro": True}}, {"h1": {"gso": True}}])
def test_frames_of_many_segments(tmp_path: Path, hosts: dict[str, Any]) -> None:
    """With gso alone a link carries frames of several segments; other checks of the run hold."""
    run = run_with(tmp_path, {}, hosts=hosts)
    assert 7.5 < goodput_mbit(run) < 8
    packets, _ = read_capture(run / "pcap/r1-eth1.pcap.zst", every_protocol=True)
    size = int(max(packets.frame_bytes))
    assert (size > 2 * 1514) if "h1" in hosts else (size == 1514)
    said = [each.what for each in read_manifest(run).not_proven]
    assert any("frames have the sizes" in each for each in said) == bool(hosts)


def test_a_small_send_buffer_limits(tmp_path: Path) -> None:
    """With SO_SNDBUF of a few segments, which the kernel does not tune, a flow fills no line."""
    assert goodput_mbit(run_with(tmp_path, {"send_buffer_bytes": 4608})) < 7.5  # of 7.72


def test_a_user_timeout_ends_a_connection(tmp_path: Path) -> None:
    """With TCP_USER_TIMEOUT the kernel gives up a connection without ACKs, and the run warns."""
    silent = {
        "rate_mbit": 8,
        "delay_ms": 20,
        "queue_packets": 50,
        "loss": {"schedule": [[0, 0], [1, 100]]},
    }
    clear = {"rate_mbit": 8, "delay_ms": 20, "queue_packets": 50}
    profile = {"directions": {"forward": silent, "reverse": clear}}
    run = run_with(tmp_path, {"user_timeout_ms": 1000}, profile=profile, duration_s=10, warm_up_s=0)
    said = json.loads((run / "traffic/one-source.json").read_text())
    assert said["gave_up"] is True
    analyse_run(run, page=False)
    rows = Metrics.read(run / "metrics.json").fidelity
    assert [row.verdict.value for row in rows if "given up by the kernel" in row.check] == [
        "warning"
    ]


def test_tcs_own_words_are_reported(tmp_path: Path) -> None:
    """A qdisc that the kernel refuses fails the run with the line and the program's words."""
    path = write_experiment(
        tmp_path, {**BASE, "hosts": {"h1": {"qdisc": {"tc": "fq_codel flows 70000"}}}}
    )
    done = twoway("run", path, "--results", tmp_path / "results")
    assert done.returncode == 1
    assert "h1: " in done.stderr
    assert "fq_codel flows 70000': RTNETLINK answers: Invalid argument" in done.stderr


@pytest.mark.parametrize("ip", [4, 6])
def test_an_mtu_holds_in_its_direction_alone(tmp_path: Path, ip: int) -> None:
    """A path's MTU cuts the segments of its direction; those of the other direction stay whole."""
    line = {"rate_mbit": 8, "delay_ms": 8, "queue_packets": 50}
    directions = {"forward": {**line, "mtu_bytes": 1280}, "reverse": line}
    flows = [{**FLOW, "ip": ip}, {**FLOW, "ip": ip, "name": "two", "from": "h2", "to": "h1"}]
    fields = {"profile": {"directions": directions}, "flows": flows, "duration_s": 1}
    document = LINUX | fields | {"warm_up_s": 0}
    run = carry_out(write_experiment(tmp_path, document), tmp_path / "results")
    assert goodput_mbit(run, "one") > 1
    assert goodput_mbit(run, "two") > 1
    largest = [
        max(read_capture(run / f"pcap/{router}-eth1.pcap.zst")[0].frame_bytes)
        for router in ("r1", "r2")
    ]
    assert largest == [14 + 1280, 14 + 1500]


def test_what_a_router_cuts_has_no_queue(tmp_path: Path) -> None:
    """Segments without DF arrive in fragments; the run's queue has no length, and it says why."""
    line = {"rate_mbit": 8, "delay_ms": 8, "queue_packets": 50}
    directions = {"forward": {**line, "mtu_bytes": 1280}, "reverse": line}
    stack = {"preset": "linux", "sysctls": {"net.ipv4.ip_no_pmtu_disc": 1}}
    document = {**BASE, "profile": {"directions": directions}, "stack": stack, "duration_s": 1}
    run = carry_out(write_experiment(tmp_path, document | {"warm_up_s": 0}), tmp_path / "results")
    assert goodput_mbit(run) > 1
    found = Metrics.read(run / "metrics.json")
    assert found.metrics["queue_mean.forward"].value is None
    assert found.metrics["queue_mean.reverse"].value is not None
    unproven = [row.check for row in found.fidelity if row.verdict.value == "not proven"]
    assert any("the wait of packets that its router made" in each for each in unproven)


@pytest.mark.parametrize(("ip", "match"), [(4, "ip dsfield"), (6, "ip6 priority")])
def test_datagrams_have_a_dscp(tmp_path: Path, ip: int, match: str) -> None:
    """A class that tc chooses by DSCP passes marked UDP first, and loses none beside other UDP."""
    protocol = "ip" if ip == 4 else "ipv6"
    words = (
        "prio bands 2 priomap" + " 1" * 16 + "\nqdisc add parent 2:2 pfifo limit 20\n"
        f"filter add parent 2: protocol {protocol} u32 match {match} 0xb8 0xfc flowid 2:1"
    )
    line = {"rate_mbit": 8, "delay_ms": 8, "queue_packets": 50}
    directions = {"forward": {**line, "queue": {"tc": words}}, "reverse": line}
    each = {"from": "h1", "to": "h2", "rate_mbit": 6, "ip": ip}
    datagrams = [{"name": "call", **each, "dscp": 46}, {"name": "others", **each}]
    fields = {"profile": {"directions": directions}, "flows": [], "datagrams": datagrams}
    document = LINUX | fields | {"duration_s": 1, "warm_up_s": 0}
    run = carry_out(write_experiment(tmp_path, document), tmp_path / "results")
    analyse_run(run, page=False)
    found = Metrics.read(run / "metrics.json")
    assert found.sound
    assert found.metrics["datagram_loss.call"].value == 0
    assert 0.5 < (found.metrics["datagram_loss.others"].value or 0) < 0.7
