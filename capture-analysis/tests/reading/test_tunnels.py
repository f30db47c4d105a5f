"""TCP in tunnels: counted by kind, and read if all TCP is in tunnels."""

from pathlib import Path

import capture_analysis
import hand_built as built
import numpy as np
import pytest
from both_parsers import assert_alike
from capture_analysis.cli import main
from capture_analysis.columns import Packets, empty_columns
from capture_analysis.reading.capture import Capture
from capture_analysis.reading.parsing import Parser
from hand_built import ethernet, ipv4, tcp, tunnels


def inside(content: bytes) -> tuple[Packets, Parser]:
    """Return a capture's packets, with those in tunnels, on which both parsers agree."""
    assert_alike(content)
    parser, columns = Parser(inside=True), empty_columns(64)
    _, end = parser.parse(np.frombuffer(content, np.uint8), columns, 0, last=True)
    return columns.where(slice(0, end)), parser


@pytest.mark.parametrize("kind", tunnels())
def test_each_kind(kind: str) -> None:
    """In every tunnel the segment is read, and its packet counts under the tunnel's kind."""
    outer = tunnels()[kind]
    packets, parser = inside(built.pcap(outer, link_type=101))
    assert packets.payload_bytes.tolist() == [len(built.PAYLOAD)] * len(outer)
    assert packets.ts_value.tolist() == [10] * len(outer)
    assert packets.frame_bytes.tolist() == [len(each) + 1 for each in outer]
    assert getattr(parser.counts, f"tunnels_{kind}") == len(outer)


@pytest.mark.parametrize("kind", tunnels())
def test_cut_at_every_byte(kind: str) -> None:
    """Both parsers agree on a packet in a tunnel that is cut after any number of bytes."""
    for packet in tunnels()[kind]:
        cut = [packet[:length] for length in range(20, len(packet))]
        assert_alike(built.pcap(cut, link_type=101))


def test_tunnels_in_tunnels() -> None:
    """Four nested tunnels are read, and the packet counts once; five are not."""
    packet = ipv4()
    for depth in range(1, 6):
        packet = ipv4(packet, 4)
        packets, parser = inside(built.pcap([packet], link_type=101))
        assert len(packets) == (depth < 5)
        assert parser.counts.tunnels_ip == 1


def test_what_is_no_tunnel() -> None:
    """Tunnels of other versions, other message types, and later fragments are not read."""
    frame, packet = ethernet(ipv4()), ipv4()
    for other in (
        ipv4(built.gre(packet, 0x0800, 1), 47),
        ipv4(built.gre(packet, 0x1234), 47),
        ipv4(built.udp(bytes(8) + frame, 4789), 17),
        ipv4(built.udp(b"\x40\0\x65\x58" + bytes(4) + frame, 6081), 17),
        ipv4(built.udp(b"\x30\xfe" + bytes(6) + packet, 2152), 17),
        ipv4(built.udp(b"\x34\xff" + bytes(9) + b"\x85" + bytes(4) + packet, 2152), 17),
        ipv4(packet, 4, fragment=5),
        ipv4(built.udp(frame, 53), 17),
    ):
        packets, parser = inside(built.pcap([other], link_type=101))
        assert len(packets) == 0
        assert parser.counts.not_tcp == 1


def test_read_where_all_else_is_empty(tmp_path: Path) -> None:
    """If all TCP is in tunnels it is read; otherwise it is counted, with a warning."""
    path = tmp_path / "x.pcap"
    carried = [packet for kind in tunnels().values() for packet in kind]
    path.write_bytes(built.pcap(carried, link_type=101))
    capture = Capture(path)
    assert sum(map(len, capture.chunks())) == len(carried)
    (said,) = [each for each in capture.warnings if "tunnel" in each]
    assert said.startswith("all TCP is inside tunnels (3 IP in IP, 3 GRE, 4 ERSPAN, 2 VXLAN,")
    path.write_bytes(built.pcap([*carried, ipv4()], link_type=101))
    assert sum(map(len, capture.chunks())) == 1
    (said,) = [each for each in capture.warnings if "tunnel" in each]
    assert said.startswith("17 packets are inside tunnels (3 IP in IP, 3 GRE,")
    assert said.endswith("left out: --inside reads them")
    capture = Capture(path, inside=True)
    assert sum(map(len, capture.chunks())) == len(carried) + 1
    (said,) = [each for each in capture.warnings if "tunnel" in each]
    assert said.endswith("and read: sizes of frames are those with their headers")


def mixed(path: Path, isn: int = 1) -> Path:
    """Make a capture of two connections; the larger one is in a VXLAN tunnel."""
    frames = []
    for k in range(20):
        there = tcp(built.TIMESTAMPS, seq=isn + 10 * k, ack=5) + built.PAYLOAD
        back = tcp(built.TIMESTAMPS, source=2000, destination=1000, seq=5, ack=isn + 10 * k + 10)
        frames += [
            ipv4(built.udp(b"\x08" + bytes(7) + ethernet(packet), 4789), 17)
            for packet in (ipv4(there), ipv4(back, source=2, destination=1))
        ]
    frames += [ipv4(tcp(source=3000) + built.PAYLOAD, source=7)] * 2
    path.write_bytes(built.pcap(frames, kind="us", link_type=101))
    return path


def said(capsys: pytest.CaptureFixture[str], *words: str | Path) -> str:
    """Return a command's output."""
    assert main([str(word) for word in words]) == 0
    return capsys.readouterr().out


@pytest.mark.slow
def test_commands_read_inside(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With --inside each command reads the connection in a tunnel and the one outside."""
    path = mixed(tmp_path / "x.pcap")
    assert "10.0.0.1:1000" not in said(capsys, "flows", path)
    assert "10.0.0.1:1000" in said(capsys, "flows", "--inside", path)
    assert '"connections": 2' in said(capsys, "metrics", "--inside", path)
    assert '"connections": 2' in said(capsys, "metrics", "--inside", "--workers=1", tmp_path)
    assert said(capsys, "export", "--inside", path, tmp_path / "x.csv").endswith(": 42 packets\n")
    other = mixed(tmp_path / "y.pcap")
    assert '"packets": 42,' in said(capsys, "match", "--inside", path, other)
    assert '"packets": 2,' in said(capsys, "match", path, other)


@pytest.mark.slow
@pytest.mark.parametrize("second", [(), ("y.pcap",)])
def test_pages_read_inside(
    second: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With --inside a report and a plot show the connection in a tunnel, of one capture or two."""
    paths = [mixed(tmp_path / name) for name in ("x.pcap", *second)]
    folder, picture = tmp_path / "report", tmp_path / "x.html"
    page = said(capsys, "report", "--inside", f"--output={folder}", *paths)
    assert 'Connection 0: <span class="ends">10.0.0.1:1000' in Path(page.strip()).read_text()
    what = "one-way-delay" if second else "time-sequence"
    assert (
        main(["plot", "--inside", f"--output={picture}", f"--what={what}", *map(str, paths)]) == 0
    )


def test_read_inside_from_python(tmp_path: Path) -> None:
    """The four functions of Python read tunnels on demand."""
    path = mixed(tmp_path / "x.pcap")
    assert len(capture_analysis.read_columns(path)["seq"]) == 2
    assert len(capture_analysis.read_columns(path, inside=True)["seq"]) == 42
    assert len(capture_analysis.read_table(path, inside=True)) == 42
    assert capture_analysis.analyse(path, inside=True)["capture"]["packets"] == 42
    assert capture_analysis.match(path, path, inside=True)["matched"]["packets"] == 42
