"""One transfer in many dressings: tunnels, tags, cooked headers and copies change no cause."""

import struct
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from capture_analysis.columns import FLAG_SYN, Mark, Packets
from capture_analysis.one_capture.limit import limit_of
from capture_analysis.one_capture.single import measure
from capture_analysis.reading.capture import Capture
from hand_built import ethernet, gre, ipv4, ipv6, mpls, pppoe, udp, vlan
from measured_captures import values
from simulated_path import Connection, Link, Simulation

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
        frames += [(read["time_ns"] + 2000 * copy, frame) for copy in range(1 + copies)]
    with path.open("wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 1 << 18, link_type))
        for time_ns, frame in sorted(frames, key=lambda each: each[0]):
            second, ns = divmod(time_ns, 1_000_000_000)
            file.write(struct.pack("<IIII", second, ns, len(frame), len(frame)) + frame)
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
