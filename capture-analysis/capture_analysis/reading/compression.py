"""Decompress gzip, xz and zstd in constant memory.

A file is recognised by its first bytes, not by its name. Any number of gzip members, xz streams or
zstd frames may follow each other.
"""

import lzma
import struct
import zlib
from collections.abc import Callable, Iterator
from typing import Protocol

from capture_analysis.errors import AnalysisError

READ_BYTES = 1 << 16
MAGIC_BYTES = 6  # enough to recognise every compression
# Guard against decompression bombs. A pcap record has at least 8 incompressible bytes (of its time,
# sequence number and checksum) in at most 1530 bytes of Ethernet, so no real capture shrinks 200
# times. A file that does is refused once it has grown beyond BOMB_BYTES, after a second or two.
BOMB_RATIO = 200
BOMB_BYTES = 1 << 30

_PIECE_BYTES = 1 << 20
# Memory that a file may ask for: xz -9 needs 65 MiB, zstd without --ultra or --long 8 MiB.
_MEMORY_BYTES = 1 << 27
# 4 bytes of zstd expand to at most 128 KiB, so these expand to at most 128 MiB at once.
_ZSTD_INPUT_BYTES = 1 << 12
_GZIP_CHECKED, _GZIP_EXTRA, _GZIP_NAME, _GZIP_COMMENT = 2, 4, 8, 16
# Checksum and length of a member's content (RFC 1952).
_GZIP_TAIL = struct.Struct("<II")
_ZSTD_START = b"\x28\xb5\x2f\xfd"
_ZSTD_SKIPPED_START = b"\x2a\x4d\x18"  # bytes after 0x50 to 0x5f, with which pzstd's files start


class DamagedError(Exception):
    """A compressed file is damaged from some byte on; the message says how."""


class _Member(Protocol):
    """One gzip member, xz stream or zstd frame."""

    @property
    def ended(self) -> bool:
        """True once all of the member was returned."""

    @property
    def wrong(self) -> bool:
        """True if the checksum of the ended member is wrong, though all of it could be read."""

    @property
    def hungry(self) -> bool:
        """True if `feed` needs more input before it can return more."""

    def feed(self, content: bytes) -> tuple[bytes, bytes]:
        """Decompress; return a piece of bounded size, and the unused content."""


class _Gzip:
    """A gzip member.

    Its header and trailer are read here: if the checksum is wrong, zlib's reader drops the last
    piece.
    """

    def __init__(self) -> None:
        self._inflate = zlib.decompressobj(wbits=-zlib.MAX_WBITS)
        self._head: bytes | None = b""
        self._tail = b""
        self._full = False
        self._checksum, self._length = 0, 0

    @property
    def hungry(self) -> bool:
        return not self._full

    @property
    def ended(self) -> bool:
        return len(self._tail) == _GZIP_TAIL.size

    @property
    def wrong(self) -> bool:
        expected = self._checksum, self._length & 0xFFFFFFFF
        return self.ended and _GZIP_TAIL.unpack(self._tail) != expected

    def feed(self, content: bytes) -> tuple[bytes, bytes]:
        if self._head is not None:
            self._head += content
            header = _gzip_header_bytes(self._head)
            if header is None:
                return b"", b""
            content, self._head = self._head[header:], None
        piece = b""
        if not self._inflate.eof:
            piece = self._inflate.decompress(content, _PIECE_BYTES)
            self._checksum = zlib.crc32(piece, self._checksum)
            self._length += len(piece)
            self._full = len(piece) == _PIECE_BYTES
            content = self._inflate.unconsumed_tail or self._inflate.unused_data
        if self._inflate.eof:
            self._full = False
            needed = _GZIP_TAIL.size - len(self._tail)
            self._tail, content = self._tail + content[:needed], content[needed:]
        return piece, content


def _gzip_header_bytes(head: bytes) -> int | None:
    """Return the length of a member's header (RFC 1952); None if it continues."""
    if len(head) < 10:
        return None
    flags, at = head[3], 10
    if flags & _GZIP_EXTRA:
        if len(head) < at + 2:
            return None
        at += 2 + int.from_bytes(head[at : at + 2], "little")
    for text in (_GZIP_NAME, _GZIP_COMMENT):
        if flags & text:
            at = head.find(b"\0", at) + 1
            if not at:
                return None
    at += 2 * bool(flags & _GZIP_CHECKED)
    return at if len(head) >= at else None


class _Xz:
    wrong = False  # feed() raises

    def __init__(self) -> None:
        self._stream = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_MEMORY_BYTES)

    @property
    def ended(self) -> bool:
        return self._stream.eof

    @property
    def hungry(self) -> bool:
        return self._stream.needs_input

    def feed(self, content: bytes) -> tuple[bytes, bytes]:
        piece = self._stream.decompress(content, _PIECE_BYTES)
        return piece, self._stream.unused_data


class _Zstd:
    wrong = False  # feed() raises

    def __init__(self) -> None:
        import zstandard  # noqa: PLC0415 # few captures need it, and it loads slowly

        self._error = zstandard.ZstdError
        decompressor = zstandard.ZstdDecompressor(max_window_size=_MEMORY_BYTES)
        self._frame = decompressor.decompressobj()

    @property
    def ended(self) -> bool:
        return bool(self._frame.eof)

    @property
    def hungry(self) -> bool:
        return True

    def feed(self, content: bytes) -> tuple[bytes, bytes]:
        try:
            piece = self._frame.decompress(content[:_ZSTD_INPUT_BYTES])
        except self._error as error:
            raise DamagedError(error) from error
        return piece, self._frame.unused_data + content[_ZSTD_INPUT_BYTES:]


_MEMBERS: dict[str, Callable[[], _Member]] = {"gzip": _Gzip, "xz": _Xz, "zstd": _Zstd}


def compression(head: bytes) -> str | None:
    """Recognise a file's compression by its first bytes; None without."""
    if head.startswith(b"\x1f\x8b"):
        return "gzip"
    if head.startswith(b"\xfd7zXZ\0"):
        return "xz"
    skipped = head[:1] and head[0] >> 4 == 5 and head[1:4] == _ZSTD_SKIPPED_START
    return "zstd" if head.startswith(_ZSTD_START) or skipped else None


class _Input:
    """The bytes of a compressed file.

    Attributes:
        content: bytes that were read and not used yet.
        taken: number of bytes read so far.
    """

    def __init__(self, head: bytes, read: Callable[[int], bytes]) -> None:
        self.content = head
        self.taken = len(head)
        self._read = read

    def read_more(self) -> bool:
        """Read on if all bytes were used; tell whether there are any."""
        if not self.content:
            self.content = self._read(READ_BYTES)
            self.taken += len(self.content)
        return bool(self.content)

    def skip_padding(self) -> None:
        """Skip zeros between members; read enough to recognise the next one."""
        while self.read_more():
            self.content = self.content.lstrip(b"\0")
            if self.content:
                break
        while len(self.content) < MAGIC_BYTES and (more := self._read(READ_BYTES)):
            self.content += more
            self.taken += len(more)


def read_compressed(kind: str, head: bytes, read: Callable[[int], bytes]) -> Iterator[bytes]:
    """Yield the content of a compressed file, in pieces.

    Args:
        kind: gzip, xz or zstd.
        head: the first bytes of the file, read already.
        read: a function that reads up to a number of bytes; returns none at the end.

    Raises: DamagedError, after everything before the damage was yielded; AnalysisError, without the
        file's name, for a decompression bomb.
    """
    source = _Input(head, read)
    given, wrong_at = 0, 0
    while source.read_more():
        if compression(source.content) != kind:
            at = source.taken - len(source.content)
            raise DamagedError(f"{kind}: something else follows at byte {at}")
        member = _MEMBERS[kind]()
        while not member.ended:
            if member.hungry and not source.read_more():
                raise DamagedError(f"{kind}: ends too early; the file was cut off")
            try:
                piece, source.content = member.feed(source.content)
            except (zlib.error, lzma.LZMAError, DamagedError) as error:
                raise DamagedError(
                    f"{kind}: damaged before byte {source.taken}: {error}"
                ) from error
            given += len(piece)
            _refuse_bomb(kind, source.taken, given)
            yield piece
        if member.wrong:
            wrong_at = wrong_at or source.taken - len(source.content)
        source.skip_padding()
    if wrong_at:
        raise DamagedError(f"{kind}: the checksum before byte {wrong_at} is wrong")


def _refuse_bomb(kind: str, taken: int, given: int) -> None:
    if given > BOMB_BYTES and given > BOMB_RATIO * taken:
        raise AnalysisError(
            f"{taken} bytes of {kind} decompress to {given} or more, over {BOMB_RATIO} times as"
            " many; no capture does so\n\nhint: if you trust the file, decompress it first"
        )
