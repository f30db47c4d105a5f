"""Reading a capture file, whole or damaged."""

import struct
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import hand_built as built
import numpy as np
import pytest
from both_parsers import assert_alike, outcome
from capture_analysis.columns import Packets
from capture_analysis.errors import AnalysisError
from capture_analysis.reading.capture import Capture, read_capture
from capture_analysis.reading.parsing import Parser
from hypothesis import given, settings
from hypothesis import strategies as st
from pcap_files import EPOCH_NS, pcap, tcp_frame


def read(folder: Path, content: bytes) -> Packets:
    """Read a file with this content."""
    path = folder / "x.pcap"
    path.write_bytes(content)
    packets, _ = read_capture(path)
    return packets


@settings(deadline=None)
@given(
    sent=st.lists(
        st.tuples(
            st.integers(0, (1 << 32) * 10**9 - 1),
            st.integers(0, 300),
            st.integers(0, (1 << 32) - 1),
            st.integers(0, 65535),
        ),
        max_size=5,
    ),
    snap_bytes=st.integers(54, 400),
)
def test_any_tcp(
    tmp_path_factory: pytest.TempPathFactory, sent: list[tuple[int, int, int, int]], snap_bytes: int
) -> None:
    """Any time, size, sequence number and snapshot length is read as it was written."""
    frames = [(t, tcp_frame(size, seq=seq, ip_id=number)) for t, size, seq, number in sent]
    content = pcap(frames, snap_bytes=snap_bytes)
    got = read(tmp_path_factory.mktemp("any"), content)
    columns = (got.time_ns, got.payload_bytes, got.seq, got.ip_id)
    assert list(zip(*(column.tolist() for column in columns), strict=True)) == sent
    assert got.frame_bytes.tolist() == [54 + size for _, size, _, _ in sent]


def test_snapshot_keeps_headers(tmp_path: Path) -> None:
    """A frame cut to its headers still gives its size on the link and its payload."""
    got = read(tmp_path, pcap([(EPOCH_NS, tcp_frame(1000))], snap_bytes=54))
    assert (got.frame_bytes.tolist(), got.payload_bytes.tolist()) == ([1054], [1000])


def test_snapshot_too_short(tmp_path: Path) -> None:
    """For a run, frames with too few bytes kept are an error, not missing packets."""
    content = pcap([(EPOCH_NS, tcp_frame(1000))] * 2, snap_bytes=53)
    with pytest.raises(AnalysisError, match=r"of 2 frames too little was kept .* at least 54$"):
        read(tmp_path, content)


def test_empty_capture(tmp_path: Path) -> None:
    """A capture without packets is empty, not an error."""
    assert len(read(tmp_path, pcap([]))) == 0


WHOLE = pcap([(EPOCH_NS, tcp_frame(3)), (EPOCH_NS, tcp_frame(4))])
SECOND = 24 + 16 + 57  # start of the second record


@pytest.mark.parametrize(
    ("length", "record"), [(SECOND + 1, 2), (SECOND + 15, 2), (SECOND + 16, 2), (SECOND - 1, 1)]
)
def test_cut_off(tmp_path: Path, length: int, record: int) -> None:
    """A file that ends within a record, header or frame is an error that names the record."""
    with pytest.raises(AnalysisError, match=rf"x\.pcap: ends inside record {record} at byte"):
        read(tmp_path, WHOLE[:length])


def test_cut_between_records(tmp_path: Path) -> None:
    """A file that ends after a record is complete, because the format has no count."""
    assert len(read(tmp_path, WHOLE[:SECOND])) == 1


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"", "is empty"),
        (WHOLE[:23], "23 bytes is too short for a capture"),
        (b"\x0a\x0d\x0d\x0a" + bytes(7), "11 bytes is too short for a capture"),
        (b"\x0a\x0d\x0d\x0a" + bytes(8), "neither pcap nor pcapng: it starts with 0a 0d 0d 0a"),
        (b"\x0a\x0d\x0d\x0a" + bytes(40), "neither pcap nor pcapng: it starts with 0a 0d 0d 0a"),
        (b"No. Time Source Destination", r"it starts with 4e 6f 2e 20 \(text\?\)"),
        (b"PK\3\4" + bytes(40), r"50 4b 03 04 \(a zip archive\?\)"),
        (b"\x1f\x8b" + bytes(40), "gzip: damaged before byte 42: "),
    ],
)
def test_not_a_capture(tmp_path: Path, content: bytes, complaint: str) -> None:
    """A file of another format is an error that names this format."""
    with pytest.raises(AnalysisError, match=rf"x\.pcap: .*{complaint}"):
        read(tmp_path, content)


def test_no_file(tmp_path: Path) -> None:
    """A file that does not exist is an error with its name."""
    with pytest.raises(AnalysisError, match=r"absent\.pcap: cannot be read: No such file"):
        read_capture(tmp_path / "absent.pcap")


def test_a_folder_is_no_capture(tmp_path: Path) -> None:
    """A folder is an error that says so."""
    with pytest.raises(AnalysisError, match=rf"{tmp_path}: cannot be read: Is a directory"):
        read_capture(tmp_path)


def test_standard_input(tmp_path: Path) -> None:
    """The path "-" reads another program's output, whatever the size of its pieces."""
    path = tmp_path / "x.pcap"
    path.write_bytes(WHOLE)
    reads = (
        "from pathlib import Path; from capture_analysis.reading.capture import read_capture;"
        "packets, _ = read_capture(Path('-')); print(packets.payload_bytes.tolist())"
    )
    writer = ["dd", f"if={path}", "bs=5", "status=none"]
    with subprocess.Popen(writer, stdout=subprocess.PIPE) as pipe:
        done = subprocess.run(
            [sys.executable, "-c", reads],
            stdin=pipe.stdout,
            capture_output=True,
            text=True,
            check=True,
        )
    assert done.stdout == "[3, 4]\n"


@pytest.mark.parametrize("packets", [1, 2, 7])
def test_chunk_size_changes_only_chunks(tmp_path: Path, packets: int) -> None:
    """The number of packets per chunk has no effect on the packets."""
    path = tmp_path / "x.pcap"
    path.write_bytes(pcap((EPOCH_NS + k, tcp_frame(k, seq=k)) for k in range(7)))
    capture = Capture(path)
    chunks = [chunk.widen() for chunk in capture.chunks(packets)]
    assert [len(chunk) for chunk in chunks] == [packets] * (7 // packets) + [7 % packets] * bool(
        7 % packets
    )
    assert np.concatenate([chunk.seq for chunk in chunks]).tolist() == list(range(7))
    assert (capture.counts.packets, len(capture.flows), capture.warnings) == (7, 1, [])


def test_columns_are_used_again(tmp_path: Path) -> None:
    """Chunks reuse their columns, so that memory does not grow with the capture."""
    path = tmp_path / "x.pcap"
    path.write_bytes(WHOLE)
    first, second = Capture(path).chunks(1)
    assert np.shares_memory(first.seq, second.seq)


def test_read_again(tmp_path: Path) -> None:
    """A second iteration over chunks starts from the beginning."""
    path = tmp_path / "x.pcap"
    path.write_bytes(WHOLE)
    capture = Capture(path)
    assert [sum(map(len, capture.chunks())) for _ in range(2)] == [2, 2]
    assert capture.counts.packets == 2


@pytest.mark.parametrize("block_bytes", [64, 100, 1000])
def test_block_size_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block_bytes: int
) -> None:
    """The number of bytes read at once has no effect, even if below a record's."""
    monkeypatch.setattr("capture_analysis.reading.byte_source._BUFFER_BYTES", block_bytes)
    frames = [(EPOCH_NS + k, tcp_frame(100 * k)) for k in range(9)]
    assert read(tmp_path, pcap(frames)).payload_bytes.tolist() == list(range(0, 900, 100))


@pytest.mark.parametrize(
    ("content", "warning"),
    [
        (pcap([]), "it has no frame, only a header"),
        (pcap([(1, b"x")] * 2, link_type=147), "2 frames of unknown link type: 147"),
        (pcap([(1, b"x")], link_type=192), "1 frame of unknown link type: 192 (PPI)"),
        (
            pcap([(1, b"x")]),
            (
                "of 1 frame too little was kept to identify the protocol (the snap length "
                "cuts headers)"
            ),
        ),
        (
            built.pcap([built.ethernet(built.ipv4(first=0x44))]),
            "1 frame with contradictory headers, left out",
        ),
        (
            built.section() + built.interface() + built.simple(b""),
            "1 frame without a time, left out",
        ),
        (pcap([(2, tcp_frame()), (1, tcp_frame())]), "1 packet with an earlier time"),
        (
            built.pcap([built.ethernet(built.ipv4(built.tcp(b"\2\xff")))]),
            "1 packet with TCP options that end too early",
        ),
        (built.pcap([built.ethernet(built.ipv4(total=0))]), "1 packet of IP length 0"),
    ],
)
def test_odd_packets_have_a_warning(tmp_path: Path, content: bytes, warning: str) -> None:
    """Missing and odd packets are reported in a sentence."""
    path = tmp_path / "x.pcap"
    path.write_bytes(content)
    capture = Capture(path)
    for _ in capture.chunks():
        pass
    (said,) = capture.warnings
    assert said.startswith(warning)


@pytest.mark.parametrize(
    ("header", "fate"),
    [
        (struct.pack("<III", 12, 1, 1), "packets"),
        (struct.pack("<III4x", 16, 1, 1), "packets"),
        (struct.pack("<III", 11, 1, 1), "malformed"),
        (struct.pack("<III", 12, 1, 258), "malformed"),
        (struct.pack("<III", 1 << 31, 1, 1), "malformed"),
        (struct.pack("<III", 12, 1, 9999), "unknown_link_type"),
    ],
)
def test_pktap(header: bytes, fate: str) -> None:
    """The header of macOS's pktap is taken off, and one that cannot be read is counted."""
    content = pcap([(EPOCH_NS, header + bytes(tcp_frame(30)))], link_type=258)
    assert_alike(content)
    found = outcome(Parser(), content)
    assert getattr(found["counts"], fate) == 1
    if fate == "packets":
        frame_bytes = [field.name for field in fields(Packets)].index("frame_bytes")
        assert found["rows"][0][frame_bytes] == 84
