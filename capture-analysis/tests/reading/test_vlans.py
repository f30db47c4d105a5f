"""VLANs and connections: whether tags split packets between two ends into two connections."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import hand_built as built
import pytest
from both_parsers import assert_alike, parse
from capture_analysis.cli import main
from capture_analysis.common_flows import CommonFlows
from capture_analysis.reading.capture import read_capture
from capture_analysis.tracking import Kind, Tracker
from capture_analysis.two_captures.pair import PairOfCaptures
from hand_built import ACK, SYN, ipv4, tagged, tcp
from hypothesis import given, settings
from hypothesis import strategies as st

Tags = tuple[int, ...]
FAR = 1 << 30
LIMIT = 64


def there(tags: Tags = (), seq: int = 1, ack: int = 0, **more: int) -> bytes:
    """Make a frame from 10.0.0.1:1000 to 10.0.0.2:2000, with ten bytes unless it has a SYN."""
    flags = more.get("flags", ACK)
    payload = b"" if flags & SYN else built.PAYLOAD
    options = built.SYN_OPTIONS if flags & SYN else built.TIMESTAMPS
    return tagged(ipv4(tcp(options, flags, seq=seq, ack=ack) + payload), *tags)


def back(tags: Tags = (), seq: int = 1, ack: int = 0, flags: int = ACK) -> bytes:
    """Make a frame in the other direction."""
    segment = tcp(built.TIMESTAMPS, flags, source=2000, destination=1000, seq=seq, ack=ack)
    return tagged(ipv4(segment, source=2, destination=1), *tags)


def exchange(out: Tags, home: Tags, isn: int, segments: int = 2) -> list[bytes]:
    """Make a connection with its handshake, and tags per direction; ISNs are isn and 2 isn."""
    frames = [there(out, isn, flags=SYN), back(home, 2 * isn, isn + 1, SYN | ACK)]
    for k in range(segments):
        sent = isn + 1 + 10 * k
        frames += [there(out, sent, 2 * isn + 1), back(home, 2 * isn + 1, sent + 10)]
    return frames


def flows(frames: Sequence[bytes]) -> Any:
    """Return the connection of each frame, on which both parsers agree."""
    return parse(built.pcap(frames), 1024)[0].flow.tolist()


def alternating(*talks: Sequence[bytes]) -> list[bytes]:
    """Yield one frame of each connection in turn."""
    return [frame for frames in zip(*talks, strict=True) for frame in frames]


@pytest.mark.parametrize(
    ("one", "other"), [((5,), (6,)), ((5,), ()), ((5, 7), (6, 7)), ((5, 7), (5, 8)), ((5, 7), (7,))]
)
def test_different_vlans(one: Tags, other: Tags) -> None:
    """Connections between the same ends are two if a VLAN tag differs."""
    frames = alternating(exchange(one, one, 1000), exchange(other, other, FAR))
    assert flows(frames) == [0, 1] * 6


@pytest.mark.parametrize(("one", "other"), [((5,), (6,)), ((5,), ())])
def test_different_vlans_from_the_middle(one: Tags, other: Tags) -> None:
    """Connections in different VLANs are two, even without captured handshakes."""
    first, second = exchange(one, one, 1000)[2:], exchange(other, other, FAR)[3:]
    assert flows([*first[:1], *second, *first[1:]]) == [0, 1, 1, 1, 0, 0, 0]


@pytest.mark.parametrize(("out", "home"), [((5,), ()), ((), (5,)), ((5,), (6,)), ((5, 6), (6,))])
@pytest.mark.parametrize("start", [0, 1, 2, 3])
def test_tagged_differently_each_way(out: Tags, home: Tags, start: int) -> None:
    """Tags that differ between directions do not split a connection, at any start."""
    frames = exchange(out, home, 1000)[start:]
    assert flows(frames) == [0] * len(frames)


def test_same_connection_in_two_vlans() -> None:
    """Packets captured on both sides of a router are copies in one connection."""
    talk = exchange((5,), (5,), 1000)
    packets, parser = parse(built.pcap(alternating(talk, exchange((6,), (6,), 1000))))
    assert len(parser.flows) == 1
    kinds = Tracker().track(packets, parser.flows).kind.tolist()
    assert kinds[1::2] == [Kind.COPY] * len(talk)
    assert Kind.COPY not in kinds[::2]


def test_ports_used_again() -> None:
    """A SYN with another number opens another connection, for the untagged direction as well."""
    frames = exchange((5,), (), 1000) + exchange((5,), (), FAR)
    assert flows(frames) == [0] * 6 + [1] * 6


def test_priority_is_no_vlan() -> None:
    """A tag of VLAN 0, and a tag's priority, are no part of a connection's VLANs."""
    frames = [there((0,)), there(), there((0xE000,)), there((0xE005,), FAR), there((5,), FAR)]
    packets, parser = parse(built.pcap(frames))
    assert packets.flow.tolist() == [0, 0, 0, 1, 1]
    assert [parser.flows.vlans(flow) for flow in (0, 1)] == [[], [5]]


def test_two_innermost_count() -> None:
    """If a frame has three tags, the inner two count; a mirror port may add the outer one."""
    packets, parser = parse(built.pcap([there((9, 5, 6)), there((8, 5, 6), FAR)]))
    assert packets.flow.tolist() == [0, 0]
    assert parser.flows.vlans(0) == [5, 6]


def test_first_tags_are_shown() -> None:
    """If only one direction has a tag, the connection is named with that VLAN."""
    flow_table = parse(built.pcap([there(), back((5,), 1, 1)]))[1].flows
    assert flow_table.label(0, 1) == "10.0.0.2:2000 > 10.0.0.1:1000 (VLAN 5)"


def test_sixty_four_connections_between_two_ends() -> None:
    """Beyond 64 connections between the same ends, a packet in another VLAN joins the latest."""
    frames = [there((1 + k,), (1 << 26) * k) for k in range(LIMIT)]
    assert flows([*frames, there((LIMIT + 1,), 1 << 25), *frames]) == [
        *range(LIMIT),
        LIMIT - 1,
        *range(LIMIT),
    ]


def test_other_protocols() -> None:
    """UDP has no sequence numbers, so a flow of UDP is one in all VLANs."""
    content = built.pcap([tagged(ipv4(built.udp(b"x", 53), 17), vlan) for vlan in (5, 6)])
    assert_alike(content)


PACKETS = st.lists(
    st.tuples(
        st.sampled_from([(), (1,), (2,), (1, 2)]),
        st.booleans(),
        st.sampled_from([SYN, SYN | ACK, ACK, 0]),
        st.sampled_from([0, 1, 1 << 24, (1 << 24) + 1, (1 << 24) + 2, 1 << 31]),
        st.sampled_from([0, 1, 1 << 24, (1 << 24) + 1, FAR]),
    ),
    max_size=40,
)


@settings(deadline=None)
@given(packets=PACKETS)
@pytest.mark.slow
def test_connections_alike(packets: list[tuple[Tags, bool, int, int, int]]) -> None:
    """For any tags, flags and numbers both parsers find the same connections."""
    frames = [
        there(tags, seq, ack, flags=flags) if ahead else back(tags, seq, ack, flags)
        for tags, ahead, flags, seq, ack in packets
    ]
    for rows in (1, 64):
        assert_alike(built.pcap(frames), rows)


def written(path: Path, frames: Sequence[bytes]) -> Path:
    """Write a capture file."""
    path.write_bytes(built.pcap(frames, kind="us"))
    return path


def test_vlans_shown_where_there_are_some(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Table and JSON show a connection's VLANs only if it has any."""
    frames = alternating(exchange((5, 7), (5, 7), 1000), exchange((), (), FAR))
    path = written(tmp_path / "x.pcap", frames)
    main(["flows", str(path)])
    table = capsys.readouterr().out
    assert "10.0.0.1:1000 > 10.0.0.2:2000 (VLAN 5.7) " in table
    assert table.count("VLAN") == 1
    main(["metrics", str(path)])
    found = json.loads(capsys.readouterr().out)["flows"]
    assert [each.get("vlans") for each in found] == [[5, 7], None]
    assert {each["name"] for each in found} == {"10.0.0.1:1000 > 10.0.0.2:2000"}
    ports = "tcp.port == 1000 && tcp.port == 2000"
    addresses = "ip.addr == 10.0.0.1 && ip.addr == 10.0.0.2"
    vlans = [f"(vlan.id == {each} || ieee8021ad.id == {each})" for each in (5, 7)]
    assert [each["wireshark_filter"] for each in found] == [
        " && ".join((addresses, ports, *vlans)),
        f"{addresses} && {ports} && !vlan && !ieee8021ad",
    ]


@pytest.mark.slow
def test_report_shows_vlans(tmp_path: Path) -> None:
    """The page has the VLAN in a connection's heading and in the table."""
    path = written(tmp_path / "x.pcap", exchange((5,), (5,), 1000))
    main(["report", str(path), "--output", str(tmp_path / "report")])
    page = (tmp_path / "report" / "report.html").read_text()
    assert '<span class="ends">10.0.0.1:1000 &gt; 10.0.0.2:2000 (VLAN 5)</span>' in page
    assert "<code>10.0.0.2:2000</code> VLAN 5</td>" in page


def test_match_needs_no_equal_vlans(tmp_path: Path) -> None:
    """Two connections whose VLANs differ between the taps are matched, each with itself."""
    one, other = (1000, FAR)
    a, b = (
        written(tmp_path / f"{name}.pcap", [frame for talk in talks for frame in talk])
        for name, talks in (
            ("a", [exchange((5,), (5,), one, 9), exchange((6,), (6,), other, 9)]),
            ("b", [exchange((7,), (), other, 9), exchange((8,), (8,), one, 9)]),
        )
    )
    assert [_connections(path) for path in (a, b)] == [2, 2]
    measured = PairOfCaptures.of_files(a, b).measure()
    assert measured.survey.flow_of_b.tolist() == [1, 0]
    assert measured.survey.pairs == 40


def _connections(path: Path) -> int:
    return len(read_capture(path)[1])


def test_common_flows_by_vlan(tmp_path: Path) -> None:
    """If SYNs are missing, equal VLANs identify the connections."""
    one, other = there((5,)), there((6,), FAR)
    _, first = read_capture(written(tmp_path / "a.pcap", [one, other]))
    _, second = read_capture(written(tmp_path / "b.pcap", [other, one]))
    common = CommonFlows()
    mappings = [common.add(first), common.add(second)]
    assert len(common.table) == 2
    assert [flow.tolist() for flow, _ in mappings] == [[0, 1], [1, 0]]
