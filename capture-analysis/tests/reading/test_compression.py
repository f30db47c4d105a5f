"""Compressed captures: recognised, and read in constant memory; damage is reported."""

import gzip
import lzma
import random
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import hand_built as built
import pytest
import zstandard
from capture_analysis.columns import Packets, concatenate
from capture_analysis.errors import AnalysisError
from capture_analysis.reading import compression
from capture_analysis.reading.capture import Capture, read_capture

COMPRESS = {"gzip": gzip.compress, "xz": lzma.compress, "zstd": zstandard.compress}
each_kind = pytest.mark.parametrize(("kind", "compress"), COMPRESS.items())
Compress = Callable[[bytes], bytes]

# Incompressible data, so that a truncated file loses the data of the part cut off.
NOISE = random.Random(1)
CAPTURE = built.pcap(
    built.ethernet(built.ipv4(built.tcp(seq=k) + NOISE.randbytes(400))) for k in range(900)
)


def read(folder: Path, content: bytes) -> tuple[Packets, Capture]:
    """Return the packets of a file with this content, as far as readable, and the capture."""
    path = folder / "capture"
    path.write_bytes(content)
    capture = Capture(path)
    return concatenate([chunk.widen() for chunk in capture.chunks()]), capture


@each_kind
def test_compression_recognised_by_content(tmp_path: Path, kind: str, compress: Compress) -> None:
    """A compressed capture is read as the capture, whatever the file's name."""
    packets, capture = read(tmp_path, compress(CAPTURE))
    assert packets.seq.tolist() == list(range(900))
    assert capture.format == f"pcap, little-endian, ns, {kind}"
    assert capture.warnings == []


@each_kind
def test_successive_members_are_one_capture(tmp_path: Path, kind: str, compress: Compress) -> None:
    """Members in sequence, of any size and with padding between, are one capture."""
    cuts = [0, 1, 30, 31, *range(5000, len(CAPTURE), 5000), len(CAPTURE)]
    padding = bytes(8) if kind != "zstd" else b"\x50\x2a\x4d\x18\4\0\0\0skip"
    members = [compress(CAPTURE[a:b]) for a, b in pairwise(cuts)]
    packets, capture = read(tmp_path, padding.join(members))
    assert packets.seq.tolist() == list(range(900))
    assert capture.damage is None


def test_zstd_skips_its_first_frame(tmp_path: Path) -> None:
    """A zstd file may start with a skippable frame, as pzstd writes it."""
    skipped = b"\x5e\x2a\x4d\x18\4\0\0\0skip"
    packets, _ = read(tmp_path, skipped + zstandard.compress(CAPTURE))
    assert len(packets) == 900


@each_kind
def test_cut_off(tmp_path: Path, kind: str, compress: Compress) -> None:
    """A truncated compressed file is read as far as possible, with a warning."""
    whole = compress(CAPTURE)
    packets, capture = read(tmp_path, whole[: len(whole) * 2 // 3])
    assert packets.seq.tolist() == list(range(len(packets)))
    assert 450 <= len(packets) <= 600
    (said,) = capture.warnings
    assert f"{kind}: ends too early; the file was cut off" in said
    with pytest.raises(AnalysisError, match=r"capture: .*cut off"):
        read_capture(tmp_path / "capture")


@pytest.mark.parametrize(
    ("said", "content"),
    [
        ("gzip: the checksum", gzip.compress(CAPTURE)),
        ("xz: damaged", lzma.compress(CAPTURE)),
        ("zstd: damaged", zstandard.ZstdCompressor(write_checksum=True).compress(CAPTURE)),
    ],
)
def test_damaged_file_read_until_the_damage(tmp_path: Path, said: str, content: bytes) -> None:
    """A compressed file with a wrong byte is read up to the damage, which is reported."""
    middle = len(content) // 2
    spoilt = content[:middle] + bytes((content[middle] ^ 0xFF,)) + content[middle + 1 :]
    _, capture = read(tmp_path, spoilt)
    assert f"{said} before byte" in str(capture.damage)


@pytest.mark.parametrize("place", [-8, -4])
def test_gzip_of_wrong_checksum(tmp_path: Path, place: int) -> None:
    """A gzip with a wrong checksum or length is read to its end, with all further members."""
    spoilt = bytearray(gzip.compress(CAPTURE[:20_000]))
    spoilt[place] ^= 1
    packets, capture = read(tmp_path, bytes(spoilt) + gzip.compress(CAPTURE[20_000:]))
    assert len(packets) == 900
    assert capture.damage == f"gzip: the checksum before byte {len(spoilt)} is wrong"


@pytest.mark.parametrize("flags", range(0, 32, 2))
def test_gzip_headers(tmp_path: Path, flags: int) -> None:
    """Each field that a gzip header may have is skipped, wherever the file is cut."""
    fields = {4: b"\3\0abc", 8: b"name\0", 16: b"comment\0", 2: b"\1\2"}
    plain = gzip.compress(CAPTURE)
    head = plain[:3] + bytes([flags]) + plain[4:10]
    packed = head + b"".join(text for bit, text in fields.items() if flags & bit) + plain[10:]
    packets, capture = read(tmp_path, packed)
    assert (len(packets), capture.damage) == (900, None)
    _, capture = read(tmp_path, plain + packed[:12])
    assert "gzip: ends too early" in str(capture.damage)


@each_kind
def test_something_follows(tmp_path: Path, kind: str, compress: Compress) -> None:
    """If other content follows a compressed capture, a warning says so."""
    whole = compress(CAPTURE)
    packets, capture = read(tmp_path, whole + b"something else")
    assert len(packets) == 900
    assert capture.damage == f"{kind}: something else follows at byte {len(whole)}"


@each_kind
@pytest.mark.slow
def test_decompression_bomb_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, compress: Compress
) -> None:
    """A small file that would fill memory or disk is refused with its compression's name."""
    monkeypatch.setattr(compression, "BOMB_BYTES", 1 << 24)
    path = tmp_path / "bomb"
    path.write_bytes(compress(built.pcap([]) + bytes(1 << 25)))
    with pytest.raises(AnalysisError, match=rf"bomb: \d+ bytes of {kind} decompress to \d+ or"):
        read_capture(path)


@each_kind
def test_dense_capture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, compress: Compress
) -> None:
    """A capture of full frames of zeros, the most compressible one, is not refused."""
    monkeypatch.setattr(compression, "BOMB_BYTES", 0)
    stamps = (b"\1\1\x08\x0a" + NOISE.randbytes(8) for _ in range(2000))
    frames = (built.ethernet(built.ipv4(built.tcp(each) + bytes(1448))) for each in stamps)
    packets, capture = read(tmp_path, compress(built.pcap(frames)))
    assert (len(packets), capture.format) == (2000, f"pcap, little-endian, ns, {kind}")
