"""Traffic in IPv6, alone or with IPv4, on topologies that only have IPv4 addresses."""

from pathlib import Path
from typing import Any

import pytest
from capture_analysis.reading.capture import Capture
from support.running import SMALL, measure, metrics, write_experiment
from support.runs import carry_out
from zstandard import ZstdDecompressor

from twoway.backends.uml import Uml
from twoway.guest.cache import Guest
from twoway.manifest import read_manifest
from twoway.report.report import analyse_run

pytestmark = pytest.mark.usefixtures("guest")

LEFT, RIGHT = SMALL["flows"]


def _run(folder: Path, **fields: Any) -> Path:
    return carry_out(write_experiment(folder, {**SMALL, **fields}), folder / "results")


def _document(run: Path) -> dict[str, Any]:
    """Measure a run whose fidelity checks must all hold."""
    analyse_run(run, page=False)
    document = metrics(run)
    assert {row["verdict"] for row in document["fidelity"]} == {"pass"}
    return document


def content(path: Path) -> bytes:
    """Unpack a capture."""
    with path.open("rb") as packed:
        return ZstdDecompressor().stream_reader(packed).read()


@pytest.mark.parametrize(
    ("topology", "profile", "ends"),
    [
        ({"name": "dumbbell", "parameters": {"pairs": 2}}, "access-8mbit", ("l1", "r2")),
        ({"name": "chain", "parameters": {"nodes": 2}}, "barakat", ("h1", "h2")),
        ({"name": "dtm_two_flows"}, "dtm-two-flows", ("h1", "h3")),
    ],
    ids=lambda value: value["name"] if isinstance(value, dict) else "",
)
def test_routes_are_those_of_ipv4(
    topology: dict[str, Any], profile: str, ends: tuple[str, str], tmp_path: Path
) -> None:
    """In a topology with any routers, IPv6 takes the same links between hosts as IPv4."""
    here, there = ends
    flow = {**LEFT, "from": here, "to": there, "window_packets": 4}
    stack = {"mtu_bytes": 1500, "ip": 6}
    run = _run(tmp_path, topology=topology, profile=profile, flows=[flow], stack=stack)
    assert _document(run)["metrics"]["efficiency.left"]["value"] > 0


def test_both_versions_share_a_link(tmp_path: Path) -> None:
    """A flow of IPv4 and one of IPv6 share both queues; each packet has its flow's version."""
    run = _run(tmp_path, flows=[{**LEFT, "ip": 6}, RIGHT])
    metrics_of = _document(run)["metrics"]
    manifest = read_manifest(run)
    assert [each.source for each in manifest.connections] == ["fd00::a00:102", "10.0.2.2"]
    # ACKs of 60 bytes, or of 40, in a data packet's transmission time.
    for name, ack_bytes in (("left", 60), ("right", 40)):
        factor = metrics_of[f"compression_factor.{name}"]["value"]
        assert factor == pytest.approx(9180 / ack_bytes, rel=0.001)


def test_nothing_is_sent_but_the_flows(tmp_path: Path) -> None:
    """Captures have only TCP packets: no neighbour discovery and no multicast reports."""
    run = _run(tmp_path, flows=[LEFT], stack={"mtu_bytes": 9180, "ip": 6}, duration_s=1)
    captures = [Capture(path) for path in sorted((run / "pcap").iterdir())]
    assert len(captures) == 6
    for capture in captures:
        packets = sum(len(chunk) for chunk in capture.chunks())
        assert packets == capture.counts.frames > 1000
    assert _document(run)["metrics"]["efficiency.left"]["value"] > 0


def test_programs_see_what_instruments_see(guest: Guest, tmp_path: Path) -> None:
    """A run captured and sampled by programs equals that in the kernel, byte for byte."""
    path = write_experiment(
        tmp_path,
        {
            **SMALL,
            "stack": {"mtu_bytes": 9180, "ip": 6},
            # One flow ends earlier: two resets in one nanosecond would have no fixed order.
            "flows": [LEFT, {**RIGHT, "stop_s": 1.4}],
        },
    )
    programs, kernel = (
        carry_out(path, tmp_path / str(inside), Uml(guest, in_kernel=inside))
        for inside in (False, True)
    )
    for name in (f"pcap/{i}.pcap.zst" for i in read_manifest(kernel).captures):
        assert content(programs / name) == content(kernel / name)
    rows = (kernel / "sockets/tcp-info.csv").read_text().splitlines()
    assert rows == (programs / "sockets/tcp-info.csv").read_text().splitlines()
    assert rows[-1].split(",")[2:6] == ["fd00::a00:202", "5001", "fd00::a00:102", "40001"]


def test_datagrams_of_ipv6_all_arrive(tmp_path: Path) -> None:
    """UDP over IPv6 has packets of the given size, 48 bytes of headers included; all arrive."""
    udp = {"name": "udp", "from": "h1", "to": "h2", "rate_mbit": 8, "ip": 6}
    found = _document(_run(tmp_path, flows=[], datagrams=[udp]))["metrics"]
    assert found["datagram_loss.udp"]["value"] == 0


def test_a_name_is_the_stacks_address(tmp_path: Path) -> None:
    """A program that names a host uses the stack's IP version, and its connection is found."""
    serve = "head -c 100000 /dev/zero > zeros; exec python3 -m http.server --bind :: 8000"
    fetch = ["curl", "-s", "-o", "out", "http://h2:8000/zeros"]
    programs = [
        {"name": "server", "host": "h2", "command": ["sh", "-c", serve], "exit_code": None},
        {"name": "client", "host": "h1", "command": fetch, "start_s": 0.5},
    ]
    stack = {"mtu_bytes": 9180, "ip": 6}
    (found,) = _document(_run(tmp_path, flows=[], programs=programs, stack=stack))["found"]
    assert found["hosts"] == ["h1", "h2"]
    assert found["backward"]["payload_bytes"] > 100_000


@pytest.mark.parametrize("aid", ["priority", "own"])
def test_acks_have_their_queue(aid: str, tmp_path: Path) -> None:
    """ACKs of IPv6 use the ACK queue; if it is served first, no ACK is compressed."""
    path = write_experiment(
        tmp_path,
        {
            **SMALL,
            "stack": {"mtu_bytes": 9180, "ip": 6, "tail_loss_probe": False},
            "matrix": {
                "acks": {
                    "set": ["profile.forward.ack_queue", "profile.reverse.ack_queue"],
                    "to": [aid, "shared"],
                }
            },
        },
    )
    apart, shared = (
        measure(Path(f"{path}@acks={queue}"), tmp_path / queue)["metrics"]["acks_compressed.left"]
        for queue in (aid, "shared")
    )
    assert (apart["value"], shared["value"] > 0.1) == (0, True)
