"""UDP flows: rates and gaps, streams with numbers, and QUIC's visible part."""

import random
import struct
from collections.abc import Callable, Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from capture_analysis.cli import main
from capture_analysis.metrics import numbered_datagrams, quic
from capture_analysis.one_capture.document import analyse
from capture_analysis.reading.datagrams import Quic
from hand_built import ethernet, ipv4, ipv6, tagged, udp
from pcap_files import EPOCH_NS, pcap

MS = 1_000_000
VERSION_2 = 0x6B3343CF
# A packet: its time in ms, its sender (0 or 1), and its payload.
Sent = tuple[float, int, bytes]


def datagram(sender: int, payload: bytes, ports: tuple[int, int] = (50_000, 443)) -> bytes:
    """Make UDP's header and payload."""
    source, destination = ports[:: -1 if sender else 1]
    return udp(payload, destination, source)


def write(path: Path, packets: Iterable[Sent], *, snap_bytes: int = 65535) -> Path:
    """Write a capture of one flow over IPv4."""
    frames = [
        (
            EPOCH_NS + round(at * MS),
            ethernet(ipv4(datagram(end, payload), 17, source=1 + end, destination=2 - end)),
        )
        for at, end, payload in packets
    ]
    path.write_bytes(pcap(frames, snap_bytes=snap_bytes))
    return path


def measured(path: Path, direction: str = "forward") -> dict[str, Any]:
    """Return the values of the flow's direction, or the reasons for missing ones."""
    (flow,) = analyse(path)["datagrams"]
    return {
        name: each.get("why") if each["value"] is None else each["value"]
        for name, each in flow[direction].items()
    }


def rtp(number: int, stamp: int, source: int = 7, kind: int = 96, size: int = 160) -> bytes:
    """Make a packet of RTP."""
    return struct.pack(">BBHII", 0x80, kind, number % 65536, stamp % 2**32, source) + bytes(size)


def long_header(kind: Quic, version: int = 1, size: int = 1200) -> bytes:
    """Make a packet with a long header; ids have 8 and 5 bytes."""
    on_wire = (kind + 1) % 4 if version == VERSION_2 else kind
    head = struct.pack(">BIB8xB5x", 0xC0 | on_wire << 4, version, 8, 5)
    head += b"\0" if kind == Quic.INITIAL else b""
    left = size - len(head) - 2
    return head + struct.pack(">H", 0x4000 | left) + bytes(left)


def short_header(spin: int, size: int = 1200) -> bytes:
    """Make a packet with a short header."""
    return bytes([0x40 | spin << 5]) + bytes(size - 1)


def test_rates_sizes_and_gaps(tmp_path: Path) -> None:
    """A direction has its packets, payload, rate, sizes and its longest gap with its begin."""
    sent = [(at, 0, bytes(1000 + 100 * (at == 30))) for at in (0, 10, 20, 30, 130)]
    path = write(tmp_path / "udp.pcap", [*sent, (131, 1, b"ok")])
    found = measured(path)
    assert (found["udp_packets"], found["udp_payload"], found["udp_size_most"]) == (5, 5100, 1100)
    assert found["udp_rate"] == pytest.approx(8 * 5100 * 4 / 5 / 0.13 / 1e6)
    assert found["udp_packet_rate"] == pytest.approx(4 / 0.13)
    assert (found["udp_gap"], found["udp_gap_begin"]) == (0.1, 0.03)
    assert found["numbered"] == numbered_datagrams.NO_NUMBERS
    assert found["quic_version"] == quic.NO_QUIC
    assert measured(path, "backward")["udp_packets"] == 1


def test_losses_order_and_jitter_of_rtp(tmp_path: Path) -> None:
    """Losses are gaps of the numbers, over their wrap; jitter is RFC 3550's, by the right clock."""
    random.seed(1)
    numbers = [n for n in range(200) if n % 20 != 7]
    sent = [(20 * n + random.uniform(0, 4), n) for n in numbers]
    sent.append((4100, 150))
    jitter = most = 0.0
    for (before, one), (at, other) in pairwise(sent):
        jitter += (abs(at - before - 20 * (other - one)) - jitter) / 16
        most = max(most, jitter)
    packets = [(at, 0, rtp(65_500 + n, 960 * n)) for at, n in sent]
    found = measured(write(tmp_path / "rtp.pcap", packets, snap_bytes=60))
    assert (found["numbered"], found["numbered_streams"]) == (191, 1)
    assert (found["numbered_lost"], found["numbered_late"]) == (9, 1)
    assert found["numbered_lost_share"] == pytest.approx(9 / 200)
    assert found["rtp_clock"] == 48_000
    assert found["rtp_jitter"] == pytest.approx(jitter, abs=0.001)
    assert found["rtp_jitter_most"] == pytest.approx(most, abs=0.001)


def test_several_sources_of_rtp(tmp_path: Path) -> None:
    """Sound and pictures on one port are two streams, and RTCP beside them is none."""
    packets: list[Sent] = []
    for n in range(50):
        packets += [
            (20 * n, 0, rtp(n, 960 * n)),
            (20 * n + 1, 0, rtp(9000 + 2 * n, 1800 * n, source=8)),
            (20 * n + 2, 0, struct.pack(">BBHI", 0x80, 200, 6, 7) + bytes(20)),
        ]
    found = measured(write(tmp_path / "bundle.pcap", packets))
    assert (found["numbered"], found["numbered_streams"], found["numbered_lost"]) == (100, 2, 49)
    assert found["rtp_jitter"] == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize("place", [0, 8])
def test_counts_of_load_generators(tmp_path: Path, place: int) -> None:
    """A count at iperf's place shows losses; it has no jitter, and random bytes have no count."""
    counted = [
        (n, 0, bytes([n, *bytes(range(1, place))])[:place] + struct.pack(">I", n) + bytes(1400))
        for n in range(100)
        if n % 10 != 3
    ]
    found = measured(write(tmp_path / "count.pcap", counted))
    assert (found["numbered_lost"], found["rtp_jitter"]) == (10, numbered_datagrams.NO_RTP)
    random.seed(2)
    noise = [(n, 0, random.randbytes(100)) for n in range(300)]
    found = measured(write(tmp_path / "noise.pcap", noise))
    assert found["numbered"] == numbered_datagrams.NO_NUMBERS


def transfer(version: int = 1, spins: Callable[[int], int] = lambda n: n // 5 % 2) -> list[Sent]:
    """Make a handshake of QUIC, then packets of both ends each 10 ms, with spin bits."""
    initial, handshake = Quic.INITIAL, Quic.HANDSHAKE
    answer = long_header(initial, version, 200) + long_header(handshake, version, 900)
    last = long_header(initial, version, 100) + long_header(handshake, version, 100)
    return [
        (0, 0, long_header(initial, version)),
        (30, 1, answer),
        (31, 0, last + short_header(spins(0), 100)),
        *((31 + 10 * n, 0, short_header(spins(n))) for n in range(1, 60)),
        *((35 + 10 * n, 1, short_header(spins(n))) for n in range(1, 60)),
    ]


@pytest.mark.parametrize("version", [1, VERSION_2, 0xFF00001D])
def test_the_visible_part_of_quic(tmp_path: Path, version: int) -> None:
    """Kinds of packets in a datagram, connection ids, handshake and spin bit are found."""
    path = write(tmp_path / "quic.pcap", sorted(transfer(version)))
    found, back = measured(path), measured(path, "backward")
    kinds = [found[f"quic_{name}"] for name in ("initial", "0rtt", "handshake", "retry", "short")]
    assert kinds == [2, 0, 1, 0, 60]
    assert (found["quic_version"], found["quic_id"], back["quic_initial"]) == (version, 5, 1)
    assert (found["quic_connect"], back["quic_answer"]) == (0.031, 0.03)
    assert found["quic_answer"] == quic.NO_ANSWER
    assert found["spin_rtt"] == back["spin_rtt"] == pytest.approx(50)
    assert found["spin_rtt_least"] == pytest.approx(50)
    assert found["numbered"] == numbered_datagrams.NO_NUMBERS


@pytest.mark.parametrize("spins", [lambda _: 1, lambda _: random.randrange(2)])
def test_an_end_that_does_not_spin(tmp_path: Path, spins: Callable[[int], int]) -> None:
    """A spin bit that stands still, or is random, is no round trip."""
    random.seed(3)
    found = measured(write(tmp_path / "still.pcap", sorted(transfer(spins=spins))))
    assert found["spin_rtt"] == found["spin_rtt_least"] == quic.NO_SPIN


def test_retry_negotiation_and_early_data(tmp_path: Path) -> None:
    """Retry, Version Negotiation and 0-RTT are counted; without its handshake nothing is QUIC."""
    negotiation = struct.pack(">BIB8xB5xI", 0x80, 0, 8, 5, 1)
    unknown = long_header(Quic.INITIAL, 0xBABABABA)
    (alone,) = analyse(write(tmp_path / "alone.pcap", [(0, 0, unknown), (5, 1, negotiation)]))[
        "datagrams"
    ]
    assert alone["forward"]["quic_version"]["value"] == 0xBABABABA
    assert alone["backward"]["quic_negotiation"]["value"] == 1
    packets = [
        (0, 0, long_header(Quic.INITIAL)),
        (5, 1, negotiation),
        (10, 0, long_header(Quic.INITIAL, size=700) + long_header(Quic.ZERO_RTT, size=500)),
        (15, 1, long_header(Quic.RETRY, size=100)),
    ]
    path = write(tmp_path / "retry.pcap", packets)
    found, back = measured(path), measured(path, "backward")
    assert (found["quic_initial"], found["quic_0rtt"], found["quic_short"]) == (2, 1, 0)
    assert (back["quic_retry"], back["quic_negotiation"]) == (1, 1)
    assert found["quic_connect"] == quic.NO_CONNECT
    late = measured(write(tmp_path / "late.pcap", sorted(transfer())[3:]))
    assert late["quic_version"] == late["spin_rtt"] == quic.NO_QUIC


def test_flows_of_udp_are_those_of_their_ends(tmp_path: Path) -> None:
    """IPv6, VLANs and marks of ECN count; fragments and tunnels begin no flow of UDP."""
    frames = [
        ethernet(ipv6(datagram(0, b"a" * 20), 17), 0x86DD),
        tagged(ipv4(datagram(0, b"b" * 10), 17), 5),
        ethernet(ipv4(datagram(0, b"c"), 17, fragment=100)),
        ethernet(ipv4(datagram(0, bytes(60), (50_000, 2152)), 17)),
        ethernet(ipv4(datagram(0, bytes(4)), 17))[:40],
        *(ethernet(bytes([0x45, mark]) + ipv4(datagram(1, b"d"), 17)[2:]) for mark in (0, 1, 1, 3)),
    ]
    path = tmp_path / "flows.pcap"
    path.write_bytes(pcap((EPOCH_NS + n, frame) for n, frame in enumerate(frames)))
    flows = analyse(path)["datagrams"]
    assert sorted(flow["forward"]["udp_payload"]["value"] for flow in flows) == [4, 10, 20, 60]
    (marked,) = (flow for flow in flows if flow["forward"]["udp_packets"]["value"] == 4)
    assert [marked["forward"][f"udp_{name}"]["value"] for name in ("l4s", "marked")] == [0.5, 1]
    assert {flow.get("vlans", [0])[0] for flow in flows} == {0, 5}
    (six,) = (flow for flow in flows if "[" in flow["name"])
    assert "ipv6.addr" in six["wireshark_filter"]
    assert "udp.port == 443" in six["wireshark_filter"]


def test_a_capture_of_udp_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Flows lists a row for each direction, and a report names the largest, with a warning."""
    path = write(tmp_path / "quic.pcap", sorted(transfer()))
    assert main(["flows", str(path)]) == 0
    out = capsys.readouterr()
    rows = [line.split() for line in out.out.splitlines()]
    assert rows[1][:5] == ["10.0.0.1:50000", ">", "10.0.0.2:443", "61", "72300"]
    assert rows[1][8:11] == ["0.031", "QUIC", "1"]
    assert "the endpoint's log (qlog) has losses" in out.err
    assert main(["report", str(path), "--output", str(tmp_path / "report")]) == 0
    page = (tmp_path / "report" / "report.html").read_text(encoding="utf-8")
    assert "<h1>No TCP. The UDP flow with most payload is 10.0.0.1:50000 &gt; " in page
    assert '<td class="number">QUIC 1</td>' in page
    assert "Directions with most data" not in page
