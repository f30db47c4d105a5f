"""Artefacts of a capture are counted, and reported with their effect."""

import struct
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import many_connections
import numpy as np
import pytest
from capture_analysis.columns import FLAG_SYN, Mark, Packets
from capture_analysis.flow_table import Seen
from capture_analysis.metrics.bottleneck_rate import NO_DELIVERY
from capture_analysis.one_capture.document import document
from capture_analysis.one_capture.limit import limit_of
from capture_analysis.one_capture.single import measure
from capture_analysis.reading.capture import Capture
from capture_analysis.reading.capture_warnings import warnings_of
from capture_analysis.reading.parsing import Counts
from hand_built import Frame, classic, ethernet, gre, ipv4, ipv6, mpls, pppoe, tcp, udp, vlan
from measured_captures import arriving, capture_of, values
from pcap_files import pcap
from simulated_path import Connection, Link, Simulation


def bulk(**captured: int) -> list[str]:
    """Return the warnings about a plain transfer that is captured with these options."""
    links = Link(1e7), Link(1e7)
    simulation = Simulation(links, [Connection(segments=300)], "near").run()
    said: list[str] = document(measure(simulation.captured(**captured)))["warnings"]
    return said


def test_plain_captures_have_no_warning() -> None:
    """A capture without artefacts has no warning."""
    assert bulk() == []


def test_coarse_clock() -> None:
    """A clock of 10 ms is reported with its effect."""
    (said,) = bulk(clock_ns=10_000_000)
    assert said.startswith("all times are multiples of 10 ms: shorter gaps are unknown")


def test_one_time() -> None:
    """If all packets have one time, the warning says so, and names no clock."""
    (said,) = bulk(clock_ns=10**18)
    assert said == "all packets have one time: nothing that needs times can be told"


def test_merged_segments() -> None:
    """Packets above the announced MSS are counted and reported as an offload's."""
    (said,) = bulk(merge=4)
    assert "have more payload than a segment can have, merged by an offload" in said
    merged = Simulation((Link(1e7), Link(1e7)), [Connection(segments=300)], "near").run()
    measured = measure(merged.captured(merge=4))
    count = values(measured, 0).segments_merged
    assert said.startswith(f"{count} packets")
    assert count == (measured.capture.whole.payload_bytes > 1460).sum()  # type: ignore[attr-defined]


def test_data_without_an_answer_are_not_delivered() -> None:
    """Data of a burst into a queue were not delivered if no ACK is captured."""
    links = Link(1e7, 5_000_000, 5_000_000), Link(1e7, 5_000_000, 5_000_000)
    transfer = Connection(segments=800, window=200)
    capture = Simulation(links, [transfer], "near").run().captured()
    assert values(measure(capture), 0).delivered_peak < 10
    capture.whole = capture.whole.where(np.flatnonzero(capture.whole.payload_bytes))
    capture.flows.rows["seen"] = Seen.HALF | Seen.SYN
    assert values(measure(capture), 0).delivered_peak == NO_DELIVERY


def test_a_syn_without_an_answer_is_no_capture_of_one_direction(tmp_path: Path) -> None:
    """Connections of one direction are counted without those whose SYNs nothing answered."""
    many_connections.write(tmp_path / "a.pcap", ["fine", "no answer"])
    said = document(measure(Capture(tmp_path / "a.pcap")))["warnings"]
    assert not any("one direction only" in each for each in said)


def test_holes_are_counted_and_named() -> None:
    """Data that is acknowledged and not captured is counted and reported with its effect."""
    capture = capture_of(arriving())
    whole = values(measure(capture), 0)
    assert (whole.unseen_bytes, whole.capture_holes, whole.unseen) == (0, 0, 0)
    segments = np.flatnonzero(capture.whole.payload_bytes)
    capture.whole = capture.whole.where(np.delete(np.arange(len(capture.whole)), segments[300:320]))
    measured = measure(capture)
    found, lost = values(measured, 0), 20 * 1448
    assert (found.unseen_bytes, found.capture_holes) == (lost, 20)
    assert found.unseen == 20 / 600
    assert found.payload + lost == whole.payload
    (said,) = document(measured)["warnings"]
    assert said.startswith(f"{lost} bytes are acknowledged that the capture lacks, at 20 places")


def test_bytes_that_the_capture_lacks_are_not_delivered_at_once() -> None:
    """If a capture stops for a while, the ACK behind the gap raises no rate: the link's holds."""
    link = Link(1e7, 5_000_000, 5_000_000, buffer_bytes=60_000)
    transfer = Connection(segments=1500, window=200, avoids=True, sacks=True, announced=400)
    capture = Simulation((link, Link(1e7)), [transfer], "near").run().captured()
    rows = np.arange(len(capture.whole))
    kept = np.delete(rows, np.arange(200) + len(rows) // 2)
    capture.whole = capture.whole.where(kept)
    found = values(measure(capture), 0)
    assert found.unseen_bytes > 100_000
    assert found.delivered_peak < 10.05
    assert found.bottleneck_rate == pytest.approx(10, rel=0.01)


@pytest.mark.parametrize("acks", [True, False])
def test_fragments_are_named(tmp_path: Path, *, acks: bool) -> None:
    """The bytes of later fragments are missing, and a warning says so, with ACKs and without."""
    frames = []
    for number in range(50):
        whole = tcp(seq=1 + 2000 * number) + bytes(2000)
        # 1480 bytes with TCP's header, then 540; the offset counts units of 8 bytes.
        frames.append((3000 * number, ethernet(ipv4(whole[:1480], fragment=0x2000))))
        frames.append((3000 * number + 1, ethernet(ipv4(whole[1480:], fragment=185))))
        if acks:
            ack = tcp(source=2000, destination=1000, seq=2, ack=2001 + 2000 * number)
            frames.append((3000 * number + 2, ethernet(ipv4(ack, source=2, destination=1))))
    path = tmp_path / "fragments.pcap"
    path.write_bytes(pcap(frames))
    said = " ".join(document(measure(Capture(path)))["warnings"])
    assert "50 packets are fragments of IP packets behind the first ones" in said
    assert ("they are in later fragments" in said) == acks


def test_connections_before_and_behind_a_nat_are_named() -> None:
    """A connection that is captured with two addresses of one end is named, unless by chance."""
    inside, outside = arriving(), replace(arriving(), port=40001)
    capture = capture_of(inside, outside)
    capture.flows.rows["base"] = 1000, 5000
    said = " ".join(document(measure(capture))["warnings"])
    assert "1 of 2 connections are captured on both sides of a NAT" in said
    assert "10.0.1.1:40000 > 10.0.2.1:5001 and 10.0.1.1:40001 > 10.0.2.1:5001 for one" in said
    for other in ([(1000, 5000), (1000, 6000)], [(0, 0)] * 2):  # a simulator's are all 0
        capture.flows.rows["base"] = other
        assert "NAT" not in " ".join(document(measure(capture))["warnings"])


def test_several_interfaces_are_named() -> None:
    """Packets of several interfaces are reported."""
    capture = capture_of(arriving())
    capture.whole.interface[::2] = 3
    (said,) = document(measure(capture))["warnings"]
    assert said.startswith("packets of 2 interfaces in one capture")


def test_each_count_has_its_consequence() -> None:
    """Odd times and lengths are counted and reported with their effect on the numbers."""
    odd = Counts(frames=9, beyond_2262=1, encrypted=3, aggregated=2, fraction_beyond=2)
    odd.backward, odd.length_beyond = 3, 4
    for said, part in zip(
        warnings_of(odd, []),
        ("1 frame at a time beyond the year 2262", "3 frames of an encrypted wireless link",
         "2 frames of a wireless link with several packets each",
         "2 packets whose time", "3 packets with an earlier",
         "rates and shares of links are too low"),
        strict=True,
    ):  # fmt: skip
        assert part in said


@pytest.mark.parametrize(("without", "said"), [(5, True), (4, False)])
def test_captures_of_mostly_other_protocols_say_so(without: int, said: bool) -> None:
    """Other protocols are named if they have more packets than TCP and UDP, tunnels aside."""
    counts = Counts(frames=without + 5, packets=4, not_tcp=without + 1, tunnels_gre=1)
    assert any("neither TCP nor UDP" in each for each in warnings_of(counts, [])) == said


MSS_AND_SCALE = b"\2\4\5\xb4\1\3\3\x08"
# Makes of TCP, and whether the second end sends it, the content of a frame.
Dressing = Callable[[bytes, bool], bytes]


def packet(tcp: bytes, back: bool) -> bytes:
    """Make an IPv4 packet of either end."""
    return ipv4(tcp, source=1 + back, destination=2 - back)


def packet6(tcp: bytes, back: bool) -> bytes:
    """Make an IPv6 packet of either end, with a header of options for each hop."""
    made = ipv6(b"\6\0\1\4\0\0\0\0" + tcp, 0)
    return made[:8] + made[24:40] + made[8:24] + made[40:] if back else made


VXLAN = b"\x08" + bytes(7)
DRESSINGS: dict[str, tuple[int, Dressing]] = {
    "GRE": (1, lambda tcp, back: ethernet(ipv4(gre(packet(tcp, back), 0x0800), 47))),
    "IP in IP": (1, lambda tcp, back: ethernet(ipv4(packet(tcp, back), 4))),
    "VXLAN": (
        1,
        lambda tcp, back: ethernet(ipv4(udp(VXLAN + ethernet(packet(tcp, back)), 4789), 17)),
    ),
    "QinQ": (1, lambda tcp, back: ethernet(vlan(vlan(packet(tcp, back)), 0x8100), 0x88A8)),
    "PPPoE": (1, lambda tcp, back: ethernet(pppoe(packet(tcp, back)), 0x8864)),
    "MPLS": (1, lambda tcp, back: ethernet(mpls(packet(tcp, back)), 0x8847)),
    "IPv6 with options": (1, lambda tcp, back: ethernet(packet6(tcp, back), 0x86DD)),
    "cooked": (113, lambda tcp, back: bytes(14) + b"\x08\0" + packet(tcp, back)),
    "cooked, version 2": (276, lambda tcp, back: b"\x08\0" + bytes(18) + packet(tcp, back)),
    "raw": (101, packet),
}


@pytest.fixture(scope="module")
def transfers() -> dict[str, Packets]:
    """Simulate a link that is full, and a receiver's window that is, near the sender."""
    links = Link(1e7, 5_000_000, 5_000_000), Link(1e7, 5_000_000, 5_000_000)
    windows = {"link": (60, 400), "receive window": (10, 10)}
    return {
        cause: Simulation(links, [Connection(window=most, announced=announced)], "near")
        .run(3000)
        .captured()
        .whole
        for cause, (most, announced) in windows.items()
    }


def measured(
    path: Path, packets: Packets, link_type: int, dress: Dressing, copies: int
) -> SimpleNamespace:
    """Write packets as a file, each of them some more times after 2 us, and measure it."""
    frames = []
    for row in range(len(packets)):
        read = {name: int(column[row]) for name, column in vars(packets).items()}
        options = MSS_AND_SCALE if read["flags"] & FLAG_SYN else b""
        if read["marks"] & Mark.TIMESTAMPS:
            options += b"\1\1\x08\x0a" + struct.pack(">II", read["ts_value"], 0)
        ports = (40_000, 5001)[:: -1 if read["half"] else 1]
        words = (20 + len(options)) // 4 << 12 | read["flags"]
        numbers = *ports, read["seq"], read["ack"], words, read["window"], row + 1, 0
        tcp = struct.pack(">HHIIHHHH", *numbers) + options + bytes(read["payload_bytes"])
        frame = dress(tcp, bool(read["half"]))
        frames += [Frame.of(read["time_ns"] + 2000 * copy, frame) for copy in range(1 + copies)]
    in_order = sorted(frames, key=lambda each: each.time_ns)
    path.write_bytes(classic(in_order, link_type, kind="ns"))
    return values(measure(Capture(path)), 0)


@pytest.mark.parametrize("cause", ["link", "receive window"])
@pytest.mark.parametrize("dressing", DRESSINGS)
def test_dressings_change_no_cause(
    transfers: dict[str, Packets], tmp_path: Path, dressing: str, cause: str
) -> None:
    """Headers around a transfer's packets change neither its cause nor the cause's share."""
    made = measured(tmp_path / "a.pcap", transfers[cause], *DRESSINGS[dressing], copies=0)
    found = limit_of(vars(made))
    assert found.cause == cause
    assert found.share is not None
    assert found.share > 0.9


@pytest.mark.parametrize("dressing", ["raw", "cooked, version 2"])
def test_a_mirror_sends_nothing_again(
    transfers: dict[str, Packets], tmp_path: Path, dressing: str
) -> None:
    """If each packet is captured twice, and bursts come between, none of them was sent again."""
    found = measured(tmp_path / "a.pcap", transfers["link"], *DRESSINGS[dressing], copies=1)
    assert found.retransmissions == 0
    assert limit_of(vars(found)).cause == "link"
