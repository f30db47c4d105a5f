"""Copy the frames of a capture to a pcapng file, with comments.

Every frame, and every other block of a pcapng file, is copied byte by byte, in order. A copy ends
at the first damaged record: other readers of captures end there, too.
"""

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Protocol

from capture_analysis.annotation.finding import Finder
from capture_analysis.annotation.notes import Notes, option
from capture_analysis.complete_file import written_whole
from capture_analysis.errors import AnalysisError
from capture_analysis.one_capture.document import need_tcp
from capture_analysis.one_capture.memory import keep_freed
from capture_analysis.one_capture.single import NOTHING, Given, blocks
from capture_analysis.reading.byte_source import STANDARD_INPUT, Buffer, ByteSource
from capture_analysis.reading.capture import Capture
from capture_analysis.reading.parsing import PCAPNG_MAGIC
from capture_analysis.reading.times import Times
from capture_analysis.tracking import Tracker

Comments = Iterator[tuple[int, list[str]]]

_SECTION = int.from_bytes(PCAPNG_MAGIC)
_INTERFACE, _PACKET, _SIMPLE_PACKET, _ENHANCED_PACKET = 1, 2, 3, 6
_FRAMES = (_PACKET, _SIMPLE_PACKET, _ENHANCED_PACKET)
_LEAST = {_SECTION: 28, _INTERFACE: 20, _PACKET: 32, _SIMPLE_PACKET: 16, _ENHANCED_PACKET: 32}
_BYTE_ORDER = 0x1A2B3C4D
# Lengths and limits as in clib/pcap.c and clib/pcapng.c.
_BLOCK, _LONGEST_BLOCK = 12, 64 << 20
_LONGEST_FRAME = 262_144
_PACKET_BYTES = 28  # length of a packet block before its frame
_RESOLUTION, _CHECK_SEQUENCE = 9, 13  # codes of an interface's options
_MODIFIED = 0xA1B2CD34
_ANY_LENGTH = b"\xff" * 8


class Wanted:
    """The comments of the frames to come.

    Attributes:
        frame: the next frame that has comments; 0 if there is none.
    """

    def __init__(self, comments: Comments) -> None:
        self._comments = comments
        self._advance()

    def _advance(self) -> None:
        self.frame, self._words = next(self._comments, (0, []))

    def options(self, order: str) -> bytes:
        """Return the comments of this frame as options; move on to the next frame."""
        words = self._words
        self._advance()
        return b"".join(option(each, order) for each in words)


class Copier(Protocol):
    """Copies the records of a file.

    Attributes:
        frames: number of frames copied so far.
        damaged: True if the next record is damaged.
    """

    frames: int
    damaged: bool

    def copy(self, data: memoryview) -> tuple[list[memoryview | bytes], int]:
        """Copy whole records from the front; return the output, and the number of bytes taken."""


def copy_capture(source: ByteSource, comments: Comments, target: BinaryIO) -> int:
    """Copy a capture; return its number of frames.

    Raises: AnalysisError, without the file's name, if the source cannot be read.
    """
    buffer, wanted = Buffer(source), Wanted(comments)
    buffer.fill()
    copier: Copier
    if buffer.content[: len(PCAPNG_MAGIC)].tobytes() == PCAPNG_MAGIC:
        copier = Blocks(wanted)
    else:
        copier = Records(wanted, buffer.content[: Records.HEADER].tobytes())
        target.write(copier.start())
        buffer.take(Records.HEADER)
    more = True
    while more and not copier.damaged:
        pieces, taken = copier.copy(buffer.content.data)
        target.write(b"".join(pieces))
        buffer.take(taken)
        more = buffer.fill()
    return copier.frames


class Records:
    """Copies a classic file: its header becomes those of a section and of an interface.

    Args:
        wanted: the comments.
        header: the first HEADER bytes of a file that the parser has read.
    """

    HEADER = 24

    def __init__(self, wanted: Wanted, header: bytes) -> None:
        self.frames, self.damaged, self._wanted = 0, False, wanted
        order = ">" if header[:2] == b"\xa1\xb2" else "<"
        magic, self._snap, link = struct.unpack(f"{order}I12xII", header)
        self._link, self._check = link & 0xFFFF, link >> 28 if link & 1 << 26 else 0
        self._decimals = 9 if magic == 0xA1B23C4D else 6
        self._header = struct.Struct(f"{order}IIII" + ("8x" if magic == _MODIFIED else ""))

    def start(self) -> bytes:
        """Return the blocks before the first frame."""
        options = struct.pack("<HHB3x", _RESOLUTION, 1, self._decimals)
        if self._check:
            options += struct.pack("<HHB3x", _CHECK_SEQUENCE, 1, 2 * self._check)
        interface = struct.pack("<HHI", self._link, 0, self._snap) + options + bytes(4)
        section = struct.pack("<IHH", _BYTE_ORDER, 1, 0) + _ANY_LENGTH
        return _block(_SECTION, section) + _block(_INTERFACE, interface)

    def copy(self, data: memoryview) -> tuple[list[memoryview | bytes], int]:
        """Copy whole records; see Copier."""
        pieces: list[memoryview | bytes] = []
        at, end, number, units = 0, len(data), self.frames, 10**self._decimals
        header, size = self._header.unpack_from, self._header.size
        pack = struct.Struct("<IIIIIII").pack
        tails = [struct.Struct(f"<{padding}xI").pack for padding in range(4)]
        wanted, wanted_frame = self._wanted, self._wanted.frame
        while at + size <= end:
            seconds, fraction, captured, original = header(data, at)
            if captured > _LONGEST_FRAME or not (captured or any(data[at : at + 16])):
                self.damaged = True
                break
            frame = at + size
            following = frame + captured
            if following > end:
                break
            number += 1
            ticks, padding = seconds * units + fraction, -captured % 4
            length = _PACKET_BYTES + captured + padding + 4
            options = b""
            if number == wanted_frame:
                options = wanted.options("<") + bytes(4)
                wanted_frame = wanted.frame
                length += len(options)
            low, high = ticks & 0xFFFFFFFF, ticks >> 32
            pieces.append(pack(_ENHANCED_PACKET, length, 0, high, low, captured, original))
            pieces.append(data[frame:following])
            if options:
                pieces += (bytes(padding), options, tails[0](length))
            else:
                pieces.append(tails[padding](length))
            at = following
        self.frames = number
        return pieces, at


class Blocks:
    """Copies a pcapng file: blocks stay unchanged, except those of frames with comments.

    Sections no longer state their length.
    """

    def __init__(self, wanted: Wanted) -> None:
        self.frames, self.damaged, self._wanted = 0, False, wanted
        self._order = "<"

    def copy(self, data: memoryview) -> tuple[list[memoryview | bytes], int]:
        """Copy whole blocks; see Copier."""
        pieces: list[memoryview | bytes] = []
        at = kept = 0
        end, number, wanted_frame = len(data), self.frames, self._wanted.frame
        unpack = struct.Struct(f"{self._order}II").unpack_from
        while at + _BLOCK <= end:
            kind, length = unpack(data, at)
            if kind == _SECTION and self._turn(data[at + 8 : at + 12]):
                unpack = struct.Struct(f"{self._order}II").unpack_from
                kind, length = unpack(data, at)
            self.damaged |= not _LEAST.get(kind, _BLOCK) <= length <= _LONGEST_BLOCK
            self.damaged |= length % 4 > 0
            if self.damaged or at + length > end:
                break
            self.damaged = data[at + length - 4 : at + length] != data[at + 4 : at + 8]
            if self.damaged:
                break
            if kind in _FRAMES:
                number += 1
                if number == wanted_frame:
                    pieces += (data[kept:at], self._commented(data[at : at + length]))
                    kept, wanted_frame = at + length, self._wanted.frame
            elif kind == _SECTION:
                pieces += (data[kept : at + 16], _ANY_LENGTH)
                kept = at + 24
            at += length
        self.frames = number
        return [*pieces, data[kept:at]], at

    def _turn(self, magic: memoryview) -> bool:
        """Take a section's byte order; tell whether it has changed."""
        before = self._order
        orders = {_BYTE_ORDER.to_bytes(4, "little"): "<", _BYTE_ORDER.to_bytes(4, "big"): ">"}
        self._order = orders.get(bytes(magic), before)
        self.damaged = bytes(magic) not in orders
        return self._order != before

    def _commented(self, block: memoryview) -> bytes:
        """Insert the comments before a block's other options, if it has a place for options."""
        order, options = self._order, self._wanted.options(self._order)
        (kind,) = struct.unpack_from(f"{order}I", block)
        if kind == _SIMPLE_PACKET:
            return bytes(block)
        (captured,) = struct.unpack_from(f"{order}I", block, 20)
        place = _PACKET_BYTES + captured + -captured % 4
        if place > len(block) - 4:
            return bytes(block)
        rest = bytes(block[place:-4]) or bytes(4)
        return _block(kind, bytes(block[8:place]) + options + rest, order)


def _block(kind: int, body: bytes, order: str = "<") -> bytes:
    length = len(body) + _BLOCK
    return struct.pack(f"{order}II", kind, length) + body + struct.pack(f"{order}I", length)


_ENDING = ".pcapng"


def annotate(
    path: Path, target: Path, given: Given = NOTHING, notes: Notes | None = None
) -> tuple[int, int, list[str]]:
    """Copy a capture to a pcapng file with comments; a failure leaves no file.

    Args:
        path: the capture; a file, because it is read twice.
        target: a name that ends in .pcapng.
        given: the user's settings for the capture.
        notes: the object that collects notes.

    Returns: the numbers of frames and of comments in the copy; warnings.
    Raises: AnalysisError if the capture cannot be read or has no TCP packet, or if the copy cannot
        be written.
    """
    _refuse(path, target)
    notes = Notes() if notes is None else notes
    capture = _noted(path, given, notes)
    with ByteSource(path) as source, written_whole(target) as aside, aside.open("wb") as file:
        try:
            frames = copy_capture(source, notes.by_frame(), file)
        except AnalysisError as error:
            raise AnalysisError(f"{path}: {error}") from error
    warnings = capture.warnings
    if frames < capture.counts.frames:
        warnings.append(
            f"{frames} of {capture.counts.frames} frames were copied: the frames after "
            "the first damage are left out"
        )
    if notes.full:
        warnings.append(f"more than {len(notes)} comments: the others are left out")
    return frames, len(notes), warnings


def _noted(path: Path, given: Given, notes: Notes) -> Capture:
    """Read the capture for the first time; return the notes on its packets."""
    keep_freed()
    capture, finder = Capture(path, inside=given.inside), Finder(notes)
    for block in blocks(capture, Tracker(), Times(), given):
        finder.add(block)
    finder.finish()
    need_tcp(capture)
    return capture


def _refuse(path: Path, target: Path) -> None:
    if path == STANDARD_INPUT:
        raise AnalysisError("annotate reads its capture twice: give a file, not standard input")
    if target.suffix != _ENDING:
        raise AnalysisError(f'{target}: the name must end in {_ENDING}, got "{target.suffix}"')
    if path.exists() and not path.is_file():
        raise AnalysisError(f"{path}: annotate reads its capture twice: give a plain file")
    if path.exists() and target.exists() and target.samefile(path):
        raise AnalysisError(
            f"{target}: this is the capture itself\n\nhint: name another file with -o"
        )
