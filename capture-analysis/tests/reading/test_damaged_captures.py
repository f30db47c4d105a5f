"""Truncated or damaged captures: all packets before are read, and the damage is reported."""

import struct
from pathlib import Path

import hand_built as built
import numpy as np
import pytest
from both_parsers import assert_alike, in_pieces, parse
from capture_analysis.errors import AnalysisError
from capture_analysis.reading.capture import Capture, read_capture
from capture_analysis.reading.parsing import Parser
from hypothesis import given, settings
from hypothesis import strategies as st

FRAMES = [built.ethernet(built.ipv4(built.tcp(seq=k) + bytes(k))) for k in range(4)]
BLOCKS = [built.section(), built.interface(), *(built.enhanced(frame) for frame in FRAMES)]
PCAP, PCAPNG = built.pcap(FRAMES), b"".join(BLOCKS)
# Offsets of the packets' ends.
PCAP_ENDS = (24 + np.cumsum([16 + len(frame) for frame in FRAMES])).tolist()
PCAPNG_ENDS = np.cumsum([len(block) for block in BLOCKS])[2:].tolist()
FILES = built.captures()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("content", "ends", "before"),
    [
        (PCAP, PCAP_ENDS, [24]),
        (PCAPNG, PCAPNG_ENDS, [0, len(BLOCKS[0]), len(BLOCKS[0] + BLOCKS[1])]),
    ],
)
def test_cut_at_every_byte(
    tmp_path: Path, content: bytes, ends: list[int], before: list[int]
) -> None:
    """Wherever a file is cut, the packets before are read, and a warning has the place."""
    path = tmp_path / "x"
    for length in range(max(before[0], 12), len(content)):
        path.write_bytes(content[:length])
        capture = Capture(path)
        seen = [seq for chunk in capture.chunks() for seq in chunk.seq.tolist()]
        whole = sum(end <= length for end in ends)
        assert seen == list(range(whole))
        begun = max(at for at in [*before, *ends] if at <= length)
        inside = (
            f"ends inside record {whole + 1} at byte {begun}: {length - begun} bytes left over;"
            " the capture was cut off"
        )
        assert capture.damage == (inside if begun < length else None)


@pytest.mark.parametrize("content", [PCAP, PCAPNG])
def test_cut_inside_header(tmp_path: Path, content: bytes) -> None:
    """A file that ends before its format is known is an error, not an empty capture."""
    path = tmp_path / "x"
    for length in range(12):
        path.write_bytes(content[:length])
        with pytest.raises(AnalysisError, match=r"x: (is empty|.* is too short for a capture)"):
            list(Capture(path).chunks())


def test_broken_chain(tmp_path: Path) -> None:
    """If no record follows one with an impossible length, a warning says where reading ends."""
    path = tmp_path / "x"
    path.write_bytes(PCAP + b"\xff" * 200)
    capture = Capture(path)
    assert sum(map(len, capture.chunks())) == 4
    assert capture.warnings == [
        f"record 5 at byte {len(PCAP)} claims 4294967295 bytes; the rest was not read"
    ]


LONG_FRAMES = [built.ethernet(built.ipv4(built.tcp(seq=k) + bytes(k))) for k in range(12)]
LONG = {
    order: (
        built.pcap(LONG_FRAMES, order=order, kind="us").replace(
            struct.pack(order + "I", 1000), struct.pack(order + "I", 1_700_000_000)
        ),
        built.section(order)
        + built.interface(order=order)
        + b"".join(built.enhanced(frame, order=order) for frame in LONG_FRAMES),
    )
    for order in "<>"
}


@pytest.mark.parametrize("order", LONG)
@pytest.mark.parametrize("pcapng", [False, True])
@pytest.mark.parametrize("damage", ["huge", "longer than the file", "noise", "zeros"])
@pytest.mark.parametrize("place", [0, 1, 5, 9])
def test_reading_goes_on_behind_damage(
    tmp_path: Path, order: str, damage: str, place: int, *, pcapng: bool
) -> None:
    """A damaged record costs only its own packet; skipped bytes are reported with their place."""
    content = LONG[order][pcapng]
    start = content.index(LONG_FRAMES[place]) - (28 if pcapng else 16)
    end = content.index(LONG_FRAMES[place + 1]) - (28 if pcapng else 16)
    length_at = start + (4 if pcapng else 8)
    changed = {
        "huge": content[:length_at] + b"\xfe" * 4 + content[length_at + 4 :],
        "longer than the file": (
            content[:length_at] + struct.pack(order + "I", 65_536) + content[length_at + 4 :]
        ),
        "noise": content[:start] + b"\xc3\x90" * 61 + content[end:],
        "zeros": content[:start] + bytes(end - start) + content[end:],
    }[damage]
    assert_alike(changed, 5)
    path = tmp_path / "x"
    path.write_bytes(changed)
    capture = Capture(path)
    seen = [seq for chunk in capture.chunks() for seq in chunk.seq.tolist()]
    assert seen == [seq for seq in range(12) if seq != place]
    assert capture.counts.damages == 1
    skipped = end - start + len(changed) - len(content)
    assert f"1 damaged place, {capture.counts.damaged_bytes} bytes skipped" in str(capture.damage)
    assert capture.counts.damaged_bytes == skipped
    with pytest.raises(AnalysisError, match="damaged place"):
        read_capture(path)


@pytest.mark.parametrize("pcapng", [False, True])
@pytest.mark.parametrize("cut", range(1, 90, 8))
def test_bytes_cut_out(cut: int, *, pcapng: bool) -> None:
    """If bytes are missing in the middle, some packets are lost and later ones are read."""
    content = LONG["<"][pcapng]
    at = content.index(LONG_FRAMES[4]) + 20
    changed = content[:at] + content[at + cut :]
    assert_alike(changed, 5)
    packets, parser = parse(changed)
    seen = packets.seq.tolist()
    assert seen == sorted(set(seen))
    assert {0, 1, 2, 3, 10, 11} <= set(seen)
    assert parser.counts.damages == 1


def test_what_is_no_likely_record() -> None:
    """Reading resumes at no record that is of another day, larger than its frame, or empty."""
    record = built.pcap(LONG_FRAMES)[24:]
    for spoiled in (
        (100_000).to_bytes(4, "little") + record[4:],
        record[:4] + b"\xff" * 4 + record[8:],
        record[:12] + bytes(4) + record[16:],
        record[:8] + bytes(8) + record[16:],
    ):
        _, parser = parse(PCAP + b"\xff" * 40 + spoiled)
        assert parser.counts.packets == 4 + 11
        assert parser.counts.damaged_bytes == 40 + 16 + len(LONG_FRAMES[0])


def test_what_is_no_likely_block() -> None:
    """Reading resumes at no block of unknown type, or with two different lengths."""
    block = BLOCKS[2]
    for spoiled in (b"\x77" + block[1:], block[:-4] + b"\x04" + block[-3:]):
        _, parser = parse(PCAPNG + b"\xff" * 40 + spoiled + b"".join(BLOCKS[3:]))
        assert parser.counts.packets == 4 + 3
        assert parser.counts.damaged_bytes == 40 + len(block)


@settings(deadline=None)
@given(
    content=st.sampled_from(FILES),
    changes=st.lists(st.tuples(st.integers(0, 4000), st.integers(0, 255)), max_size=20),
    length=st.integers(24, 4000),
    rows=st.integers(1, 64),
)
@pytest.mark.slow
def test_mutations_are_read_alike(
    content: bytes, changes: list[tuple[int, int]], length: int, rows: int
) -> None:
    """Both parsers agree on a capture with any changed bytes, and never crash."""
    mutated = bytearray(content)
    for at, value in changes:
        mutated[at % len(mutated)] = value
    assert_alike(bytes(mutated[:length]), rows)


@settings(deadline=None)
@given(content=st.binary(max_size=400), start=st.sampled_from([*FILES[:4], PCAPNG]))
@pytest.mark.slow
def test_noise_is_read_alike(content: bytes, start: bytes) -> None:
    """Both parsers agree on noise after a file's start."""
    assert_alike(start[:24] + content)
    assert_alike(start + content)


@settings(deadline=None)
@given(content=st.sampled_from(FILES), piece_bytes=st.integers(24, 500), rows=st.integers(1, 5))
@pytest.mark.slow
def test_cutting_into_pieces_changes_nothing(content: bytes, piece_bytes: int, rows: int) -> None:
    """The sizes of pieces of a file, and the number of rows, have no effect."""
    whole, parts = Parser(), Parser()
    assert in_pieces(parts, content, piece_bytes, rows) == in_pieces(whole, content, 1 << 16, 64)
    assert parts.counts == whole.counts
    assert parts.flows.rows.tobytes() == whole.flows.rows.tobytes()
