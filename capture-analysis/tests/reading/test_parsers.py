"""Hand-built captures, which both parsers must read in the same way."""

import struct
from dataclasses import fields, replace
from typing import Any

import hand_built as built
import numpy as np
import pytest
from both_parsers import assert_alike, parse
from capture_analysis.columns import Mark, Packets, empty_columns
from capture_analysis.errors import AnalysisError
from capture_analysis.flow_table import NO_SCALE
from capture_analysis.reading.parsing import Counts, Parser
from capture_analysis.tracking import Kind, Tracker
from hand_built import (
    ACK,
    SYN,
    enhanced,
    ethernet,
    interface,
    ipv4,
    ipv6,
    mpls,
    padded,
    pppoe,
    radiotap,
    section,
    tcp,
    vlan,
    wlan,
)
from hypothesis import given, settings
from hypothesis import strategies as st

SECOND_NS = 1_000_000_000


SNAP = b"\xaa\xaa\3\0\0\0"


def fate(frame: bytes, link_type: int = 1) -> str:
    """Return the name of the count that a frame raises, besides frames."""
    counts = parse(built.pcap([frame], link_type=link_type))[1].counts
    raised = [field.name for field in fields(Counts) if getattr(counts, field.name)]
    assert raised[0] == "frames"
    return raised[1]


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize(
    ("kind", "unit_ns", "name"),
    [
        ("us", 1000, "pcap, {}-endian, us"),
        ("ns", 1, "pcap, {}-endian, ns"),
        ("modified", 1000, "pcap modified, {}-endian, us"),
    ],
)
def test_classic_files_give_exact_columns(order: str, kind: str, unit_ns: int, name: str) -> None:
    """All columns are exact, for both byte orders and the three kinds of classic files."""
    frames = [ethernet(ipv4(tcp(built.SACK + built.TIMESTAMPS, 0x111, seq=2**32 - 1) + b"abc"))]
    packets, parser = parse(built.pcap(frames * 2, order=order, kind=kind))
    assert {field.name: getattr(packets, field.name)[1] for field in fields(Packets)} == {
        "time_ns": 1000 * SECOND_NS + unit_ns,
        "frame_bytes": 14 + 20 + 20 + 12 + 12 + 3 + 1,
        "frame": 2,
        "payload_bytes": 3,
        "flow": 0,
        "seq": 2**32 - 1,
        "ack": 2,
        "ts_value": 10,
        "ts_echo": 20,
        "sack_left": 5,
        "sack_right": 9,
        "window": 500,
        "ip_id": 7,
        "interface": 0,
        "flags": 0x111,
        "half": 0,
        "marks": Mark.SACK | Mark.TIMESTAMPS,
    }
    assert parser.format == name.format("little" if order == "<" else "big")
    assert parser.link_types == [1]
    assert parser.broken is None


@pytest.mark.parametrize(
    ("link_type", "frame"),
    [
        (0, b"\2\0\0\0" + ipv4()),
        (0, b"\0\0\0\2" + ipv4()),
        *((0, bytes([0, 0, 0, family]) + ipv6()) for family in (10, 24, 28, 30)),
        (108, b"\0\0\0\2" + ipv4()),
        *((kind, content) for kind in (12, 14, 101) for content in (ipv4(), ipv6())),
        (228, ipv4()),
        (229, ipv6()),
        (113, bytes(14) + b"\x86\xdd" + ipv6()),
        (276, b"\x08\0" + bytes(18) + ipv4()),
        (1, ethernet(ipv6(), 0x86DD)),
        (1, ethernet(vlan(vlan(vlan(ipv4()), 0x88A8), 0x9100), 0x8100)),
        (1, ethernet(vlan(mpls(ipv6(), 3), 0x8848), 0x8100)),
        (1, ethernet(mpls(ipv4(), 8), 0x8847)),
        (1, ethernet(vlan(pppoe(ipv6(), 0x57), 0x8864), 0x8100)),
        (1, ethernet(SNAP + b"\x86\xdd" + ipv6(), 60)),
        (1, ethernet(vlan(SNAP + b"\x08\0" + ipv4(), 1500), 0x8100)),
        (1, ethernet((SNAP + b"\0\x3c") * 7 + SNAP + b"\x08\0" + ipv4(), 60)),
        (1, ethernet(vlan(pppoe(b"", 0x11)[:6] + b"\x21" + ipv4(), 0x8864), 0x8100)),
        (1, ethernet(pppoe(b"")[:6] + b"\x57" + ipv6(), 0x8864)),
        *((9, start + b"\0\x57" + ipv6()) for start in (b"", b"\xff\3")),
        *((kind, start + b"\x21" + ipv4()) for kind in (9, 50) for start in (b"", b"\xff\3")),
        *((kind, b"\x0f\0\x08\0" + ipv4()) for kind in (50, 104)),
        (104, b"\x8f\0\x86\xdd" + ipv6()),
        (0xF4000001, ethernet(ipv4())),
        *((105, wlan(ipv4(), 0x08, flags)) for flags in (0, 1, 2, 3, 0x0B)),
        *((105, wlan(ipv6(), kind, ethertype=0x86DD)) for kind in (0x08, 0x18, 0x38)),
        *((105, wlan(ipv4(), 0x88, flags)) for flags in (1, 3, 0x81, 0x83)),
        (105, wlan(vlan(ipv4()), ethertype=0x8100)),
        (127, radiotap(wlan(ipv4()))),
        (127, radiotap(wlan(ipv4(), 0x88), (2,), b"\0")),
        (127, radiotap(padded(wlan(ipv4(), 0x88), 26), (2,), b"\x20")),
        (127, radiotap(padded(wlan(ipv4(), 0x88), 26), (3,), bytes(8) + b"\x20")),
        (127, radiotap(padded(wlan(ipv4(), flags=3), 30), (1 << 31 | 3, 0), bytes(12) + b"\x20")),
        (127, radiotap(wlan(ipv4(), 0x88), (1,), bytes(8) + b"\x20")),
    ],
)
def test_packet_found_behind_every_link_header(link_type: int, frame: bytes) -> None:
    """The same packet is found behind every link header and any tags."""
    packets, _ = parse(built.pcap([frame], link_type=link_type))
    assert len(packets) == 1
    assert packets.payload_bytes[0] == len(built.PAYLOAD)
    assert packets.ts_echo[0] == 20


@pytest.mark.parametrize(
    ("expected", "frame", "link_type"),
    [
        ("not_ip", ethernet(b"", 0x0806), 1),
        ("not_ip", ethernet(b"", 0x0050), 1),
        ("not_ip", b"\0\0\0\7", 108),
        ("not_ip", b"\x10" + bytes(40), 101),
        ("not_ip", ethernet(pppoe(b"", 0xC021), 0x8864), 1),
        ("not_ip", ethernet(b"\xaa\xaa\3\0\0\1\x08\0" + ipv4(), 60), 1),
        ("not_ip", ethernet(b"\x42\x42\3" + bytes(60), 60), 1),
        ("not_ip", ethernet(SNAP, 60), 1),
        ("not_ip", b"\xff\3\xc0\x21", 9),
        ("not_ip", b"\x0f\0\x80\x35", 50),
        ("too_short", b"", 9),
        ("too_short", b"\xff\3\0", 50),
        ("too_short", b"\x0f\0\x08", 104),
        ("malformed", ethernet((SNAP + b"\0\x3c") * 9, 60), 1),
        ("not_tcp", ethernet(ipv4(protocol=17)), 1),
        ("not_tcp", ethernet(ipv4(protocol=17, fragment=5)), 1),
        ("not_tcp", ethernet(ipv6(following=50), 0x86DD), 1),
        ("later_fragments", ethernet(ipv4(fragment=5)), 1),
        ("later_fragments", ethernet(ipv6(b"\6\0\0\x08" + bytes(4), 44), 0x86DD), 1),
        ("too_short", ethernet(ipv4())[:13], 1),
        ("too_short", ethernet(ipv4())[:33], 1),
        ("too_short", ethernet(ipv4())[:53], 1),
        ("too_short", ethernet(ipv4(bytes(8), 17))[:41], 1),
        ("too_short", ethernet(ipv6(), 0x86DD)[:53], 1),
        ("too_short", ethernet(ipv6(b"\6\0", 0), 0x86DD), 1),
        ("too_short", ethernet(b"\0\1", 0x8100), 1),
        ("too_short", b"", 101),
        ("malformed", ethernet(ipv4(first=0x65)), 1),
        ("malformed", ethernet(ipv4(first=0x44)), 1),
        ("malformed", ethernet(ipv4(total=51)), 1),
        ("malformed", ethernet(ipv4(tcp(words=4))), 1),
        ("malformed", ethernet(ipv6(version=4), 0x86DD), 1),
        ("malformed", ethernet(ipv6(payload=31), 0x86DD), 1),
        ("malformed", ethernet(mpls(ipv4(), 9), 0x8847), 1),
        ("malformed", ethernet((b"\0\1\x81\0" * 9) + ipv4(), 0x8100), 1),
        ("malformed", ethernet(ipv6(b"\0\0" + bytes(6), 0) + bytes(100), 0x86DD), 1),
        ("unknown_link_type", ethernet(ipv4()), 147),
        *(("not_ip", wlan(ipv4(), kind), 105) for kind in (0x80, 0xD4, 0x48, 0xC8, 0x09)),
        ("not_ip", wlan(ipv4(), ethertype=0x888E), 105),
        ("encrypted", wlan(ipv4(), flags=0x41), 105),
        ("encrypted", radiotap(wlan(ipv4(), 0x88, 0x42, qos=0x80)), 127),
        ("aggregated", wlan(ipv4(), 0x88, qos=0x80), 105),
        ("later_fragments", wlan(ipv4(), fragment=1), 105),
        ("too_short", b"\x08", 105),
        ("too_short", wlan(ipv4())[:23], 105),
        ("too_short", wlan(ipv4(), 0x88, 0x83)[:35], 105),
        ("too_short", radiotap(b"")[:7], 127),
        ("too_short", b"\0\0\x09\0" + bytes(4), 127),
        ("malformed", b"\0\0\7\0" + bytes(4), 127),
        ("malformed", b"\1" + radiotap(wlan(ipv4()))[1:], 127),
    ],
)
def test_every_other_frame_is_counted(expected: str, frame: bytes, link_type: int) -> None:
    """Each frame that is no packet is counted under the reason of its lowest layer."""
    assert fate(frame, link_type) == expected


WIRELESS = [
    (105, wlan(ipv4(), 0x88, 0x83)),
    (127, radiotap(padded(wlan(ipv4(), 0x88), 26), (1 << 31 | 3, 1 << 31, 0), bytes(8) + b"\x20")),
]


def test_wireless_retries_are_copies() -> None:
    """A frame that the link repeats is a copy of its packet; the next packet is not."""
    first, following = (ipv4(tcp(built.TIMESTAMPS, seq=seq) + built.PAYLOAD) for seq in (1, 11))
    frames = [wlan(first, 0x88), wlan(first, 0x88, 9), wlan(following, 0x88)]
    packets, parser = parse(built.pcap(frames, link_type=105))
    kinds = Tracker().track(packets, parser.flows).kind.tolist()
    assert kinds == [Kind.NEW_DATA, Kind.COPY, Kind.NEW_DATA]


@pytest.mark.parametrize(("link_type", "frame"), WIRELESS)
def test_wireless_cut(link_type: int, frame: bytes) -> None:
    """Both parsers agree on an 802.11 frame cut after any number of bytes."""
    assert_alike(built.pcap([frame[:n] for n in range(len(frame))], link_type=link_type))


@settings(deadline=None)
@given(link_type=st.sampled_from([105, 127]), start=st.binary(max_size=60))
@pytest.mark.slow
def test_wireless_alike(link_type: int, start: bytes) -> None:
    """Both parsers agree if any bytes are in place of a wireless header."""
    assert_alike(built.pcap([start + wlan(ipv4())], link_type=link_type))


@pytest.mark.parametrize(
    ("options", "kept", "marks", "values"),
    [
        (built.TIMESTAMPS, 32, Mark.TIMESTAMPS, (10, 20, 0, 0)),
        (built.TIMESTAMPS, 31, Mark.OPTIONS_CUT, (0, 0, 0, 0)),
        (built.TIMESTAMPS + built.SACK, 32, Mark.TIMESTAMPS | Mark.OPTIONS_CUT, (10, 20, 0, 0)),
        (built.SACK + built.MPTCP, 60, Mark.SACK | Mark.MPTCP, (0, 0, 5, 9)),
        *((option, 60, Mark.ACCECN, (0, 0, 0, 0)) for option in built.ACCECN),
        (b"\1\1\5\x12" + bytes(7) + b"\1" + bytes(8), 60, Mark.SACK, (0, 0, 0, 1)),
        (b"\0\1\x08\x0a" + bytes(8), 60, 0, (0, 0, 0, 0)),
        (b"\x08\x08" + bytes(6), 60, 0, (0, 0, 0, 0)),
        (b"\5\x0c" + bytes(10), 60, 0, (0, 0, 0, 0)),
        (b"\x08\1\0\0", 60, Mark.OPTIONS_CUT, (0, 0, 0, 0)),
        (b"\x08\x09\0\0", 60, Mark.OPTIONS_CUT, (0, 0, 0, 0)),
        (b"\1\1\1\x08", 60, Mark.OPTIONS_CUT, (0, 0, 0, 0)),
    ],
)
def test_whole_options_in_header_count(
    options: bytes, kept: int, marks: int, values: tuple[int, ...]
) -> None:
    """An option counts if it is complete, captured and within the header."""
    packets, _ = parse(built.pcap([ethernet(ipv4(tcp(options)))[: 34 + kept]]))
    row = (packets.ts_value, packets.ts_echo, packets.sack_left, packets.sack_right)
    assert packets.marks[0] & ~np.uint16(Mark.LENGTH_BEYOND) == marks
    assert tuple(int(column[0]) for column in row) == values


@pytest.mark.parametrize(
    ("frame", "payload", "marks"),
    [
        (ethernet(ipv4(tcp() + b"12345", total=0)), 6, Mark.LENGTH_GUESSED),
        (ethernet(ipv6(tcp() + b"12345", payload=0), 0x86DD), 6, Mark.LENGTH_GUESSED),
        (ethernet(ipv4(tcp(), total=60)), 20, Mark.LENGTH_BEYOND),
        (ethernet(ipv4(tcp(), total=41)), 1, 0),
        (ethernet(ipv6(tcp(), payload=60), 0x86DD), 40, Mark.LENGTH_BEYOND),
        (ethernet(ipv4(tcp() + b"12", fragment=0x2000)), 2, Mark.FIRST_FRAGMENT),
        (ethernet(ipv6(b"\6\0\0\1" + bytes(4) + tcp(), 44), 0x86DD), 0, Mark.FIRST_FRAGMENT),
        (ethernet(ipv6(b"\6\1" + bytes(10) + tcp() + b"1", 51), 0x86DD), 1, 0),
        (ethernet(ipv4(tcp(), options=40)), 0, 0),
        (ethernet(ipv4(tcp()) + bytes(6)), 0, 0),
        (ethernet(ipv4(tcp(checksum=0x141D))), 0, Mark.UNFILLED),
        (ethernet(ipv4(tcp(checksum=0x141D) + b"1")), 1, 0),
        (ethernet(ipv6(tcp(checksum=0x1D)), 0x86DD), 0, Mark.UNFILLED),
        (ethernet(ipv4(tcp(checksum=0), ttl=255)), 0, Mark.UNFILLED | Mark.FIRST_TTL),
        (ethernet(ipv4(tcp(), ttl=127)), 0, 0),
        (ethernet(ipv6(tcp(), ttl=64), 0x86DD), 0, Mark.FIRST_TTL),
        *(
            (ethernet(ipv4(tcp() + record + b"\0")), len(record) + 1, mark)
            for record, mark in built.TLS
        ),
        (ethernet(ipv4(tcp(), total=40) + built.TLS[0][0]), 0, 0),
    ],
)
def test_payload_and_marks(frame: bytes, payload: int, marks: int) -> None:
    """Payload follows from IP's length, for any headers and padding, and marks from headers."""
    packets, _ = parse(built.pcap([frame]))
    assert (int(packets.payload_bytes[0]), int(packets.marks[0])) == (payload, marks)


@pytest.mark.parametrize(("fraction", "beyond"), [(999_999, 0), (1_000_000, 1), (2_500_000, 1)])
def test_excessive_fraction_is_added_and_counted(fraction: int, beyond: int) -> None:
    """A fraction of a second that is one or more is added to the time and counted."""
    content = bytearray(built.pcap([ethernet(ipv4())], kind="us"))
    struct.pack_into("<I", content, 28, fraction)
    packets, parser = parse(bytes(content))
    assert packets.time_ns[0] == 1000 * SECOND_NS + fraction * 1000
    assert parser.counts == Counts(frames=1, packets=1, fraction_beyond=beyond)


def test_connections_as_the_flow_table_defines_them() -> None:
    """Halves, bases, options of SYNs, and reused ports are as FLOW defines them."""
    there = {"source": 1, "destination": 2}
    back = {"source": 2, "destination": 1}
    answer = {"source": 2000, "destination": 1000}
    options = b"\2\4\5\xb4\3\3\x0f\0"
    packets, parser = parse(
        built.pcap(
            ethernet(frame)
            for frame in (
                ipv4(tcp(options, SYN, seq=7), **there),
                ipv4(tcp(b"", SYN | ACK, seq=9, **answer), **back),
                ipv4(tcp(options, SYN, seq=7), **there),
                ipv4(tcp(b"", SYN, seq=8), **there),
                ipv4(tcp(b"", ACK, seq=1, **answer), **back),
                ipv4(tcp(options, SYN | ACK, seq=5, **answer), **back),
            )
        )
    )
    assert packets.flow.tolist() == [0, 0, 0, 1, 1, 1]
    assert packets.half.tolist() == [0, 1, 0, 0, 1, 1]
    rows = parser.flows.rows
    assert parser.flows.name(1) == "10.0.0.1:1000 > 10.0.0.2:2000"
    assert rows["first_ns"].tolist() == [1000 * SECOND_NS, 1000 * SECOND_NS + 3]
    assert rows["base"].tolist() == [[7, 9], [8, 1]]
    assert rows["mss"].tolist() == [[1460, 0], [0, 1460]]
    assert rows["window_scale"].tolist() == [[14, NO_SCALE], [NO_SCALE, 14]]
    assert parser.flows.ends_seen().tolist() == [[True, True], [True, True]]
    assert parser.flows.syns_seen().tolist() == [[True, True], [True, False]]
    assert rows["version"].tolist() == [4, 4]


def conversation(packets: list[tuple[int, int, int, int]]) -> bytes:
    """Make a capture of packets, each of a port, a side, flags and a sequence number."""
    frames = []
    for port, side, flags, seq in packets:
        ports = (1000 + port, 2000) if side == 0 else (2000, 1000 + port)
        segment = tcp(built.SYN_OPTIONS, flags, source=ports[0], destination=ports[1], seq=seq)
        frames.append(ethernet(ipv4(segment, source=1 + side, destination=2 - side)))
    return built.pcap(frames)


def test_many_connections() -> None:
    """Connections are numbered as they appear, for any number of them."""
    count = 5000
    frames = [ethernet(ipv4(tcp(source=k % 1000), destination=k // 1000)) for k in range(count)]
    packets, parser = parse(built.pcap(frames + frames[::-1]), 2 * count)
    assert packets.flow.tolist() == [*range(count), *reversed(range(count))]
    assert len(parser.flows) == count


@settings(deadline=None)
@given(
    resolution=st.integers(0, 255),
    offset_s=st.one_of(st.integers(-(10**10), 10**10), st.integers(-(2**63), 2**63 - 1)),
    ticks=st.one_of(st.integers(0, 2**64 - 1), st.integers(0, 2**20)),
)
def test_times_cut_to_ns_or_counted(resolution: int, offset_s: int, ticks: int) -> None:
    """Times of any resolution and offset are cut to ns, or counted if they do not fit."""
    start = section() + interface(1, built.clock(resolution, offset_s))
    packets, parser = parse(start + enhanced(ethernet(ipv4()), ticks))
    per_second = 2 ** (resolution & 0x7F) if resolution & 0x80 else 10**resolution
    expected_ns = ticks * SECOND_NS // per_second + offset_s * SECOND_NS
    if -(2**63) <= expected_ns < 2**63:
        assert packets.time_ns.tolist() == [expected_ns]
    else:
        assert parser.counts == Counts(frames=1, beyond_2262=1)


@pytest.mark.parametrize("edge_ns", [2**63 - 1, -(2**63)])
@pytest.mark.parametrize("step", [-1, 0, 1])
def test_edges_of_time(edge_ns: int, step: int) -> None:
    """The first and the last ns of 64 bits are valid times; one ns beyond is not."""
    second, ns = divmod(edge_ns + step, SECOND_NS)
    start = section() + interface(1, built.clock(9, second))
    packets, _ = parse(start + enhanced(ethernet(ipv4()), ns))
    fits = -(2**63) <= edge_ns + step < 2**63
    assert packets.time_ns.tolist() == ([edge_ns + step] if fits else [])


def test_section_may_change_byte_order() -> None:
    """A section may change the byte order, and starts with no interface."""
    frame = ethernet(ipv4())
    content = section("<") + interface(147) + interface() + enhanced(frame, 5, 1) + enhanced(frame)
    content += section(">") + enhanced(frame, order=">") + interface(order=">")
    content += enhanced(frame, 4, order=">") + built.obsolete(frame, 6, order=">")
    content += built.simple(frame, ">") + built.block(4, b"names", ">")
    packets, parser = parse(content)
    assert packets.time_ns.tolist() == [5000, 4000, 6000]
    assert packets.interface.tolist() == [1, 0, 0]
    expected = Counts(frames=6, packets=3, unknown_link_type=1, no_interface=1, no_timestamp=1)
    assert parser.counts == replace(expected, backward=1, other_blocks=1)
    assert (parser.format, parser.link_types) == ("pcapng, little-endian", [1, 147])


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (built.pcap([]) + b"\xff" * 16, "record 1 at byte 24 claims 4294967295 bytes"),
        (section() + b"\6\0\0\0\x1c\0\0\0" + bytes(20), "block at byte 28 claims 28 bytes"),
        (section() + b"\7\0\0\0\x0d\0\0\0" + bytes(20), "block at byte 28 claims 13 bytes"),
        (section() + b"\7\0\0\0\0\0\0\x10" + bytes(20), "block at byte 28 claims 268435456 bytes"),
        (
            section() + b"\7\0\0\0\x10\0\0\0" + bytes(8),
            "block at byte 28 claims 16 bytes before and 0 behind",
        ),
        (section() + section()[:8] + bytes(20), "section at byte 28 has no byte order: 00000000"),
    ],
)
def test_parsing_stops_where_records_break(content: bytes, sentence: str) -> None:
    """If the next record cannot be found, reading ends with a sentence that has the place."""
    _, parser = parse(content)
    assert parser.broken == sentence
    assert parser.parse(np.zeros(100, np.uint8), empty_columns(1), 0) == (0, 0)


@pytest.mark.parametrize("content", [b"GIF89a" + bytes(20), section()[:8] + bytes(20)])
def test_no_capture(content: bytes) -> None:
    """A file that is no capture is refused, and the error has its first bytes."""
    with pytest.raises(AnalysisError, match=content[:4].hex(" ")):
        parse(content)


@pytest.mark.parametrize("short", [built.pcap([])[:23], section()[:11], b""])
def test_short_start(short: bytes) -> None:
    """While a file's header is incomplete, nothing is read and nothing refused."""
    packets, parser = parse(short)
    assert (len(packets), parser.counts, parser.format) == (0, Counts(), "")


@pytest.mark.parametrize(
    "spoil",
    [
        {"seq": np.zeros(4, np.int64)},
        {"seq": np.zeros(3, np.uint32)},
        {"seq": np.zeros(8, np.uint32)[::2]},
        {"seq": np.frombuffer(bytes(16), np.uint32)},
    ],
)
def test_wrong_columns(spoil: dict[str, Any]) -> None:
    """Columns that the library would overrun or misread are refused."""
    with pytest.raises(ValueError, match="seq: must be"):
        Parser().parse(np.zeros(0, np.uint8), replace(empty_columns(4), **spoil), 0)
