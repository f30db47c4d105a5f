"""Blocks of a pcapng file."""

import struct
from dataclasses import dataclass

import numpy as np
from capture_analysis.columns import IntArray
from capture_analysis.reading.parsing import LONGEST_RECORD_BYTES, PCAPNG_MAGIC

from reference.parser.clock import UintArray, time_ns
from reference.parser.frames import Bytes, Fate, Frames, headers_at

_SECTION, _INTERFACE, _OLD_PACKET, _SIMPLE_PACKET, _PACKET = 0x0A0D0D0A, 1, 2, 3, 6
_LEAST_BYTES = {_SECTION: 28, _INTERFACE: 20, _OLD_PACKET: 32, _SIMPLE_PACKET: 16, _PACKET: 32}
_BLOCK_BYTES = 12  # type, length, and the length once more at the end
_FRAME_AT, _LENGTH_BYTES = 28, 4  # in a packet block
_BYTE_ORDER_MARKS = {b"\x4d\x3c\x2b\x1a": "<", b"\x1a\x2b\x3c\x4d": ">"}
_MOST_INTERFACES = 1 << 20
_OPTION_RESOLUTION, _OPTION_OFFSET = 9, 14
_MICROSECONDS = 6


_KNOWN = {_SECTION, *range(1, 7)}
_LONGEST_LIKELY_BYTES = 1 << 20


class _BrokenChainError(Exception):
    """The place of the next block is unknown."""


@dataclass
class _Interface:
    """An interface of the section; `clock` explains the last two fields."""

    link_type: int
    resolution: int = _MICROSECONDS
    offset_s: int = 0


class PcapngRecords:
    """The blocks of a pcapng file, read in pieces; attributes as of PcapRecords."""

    def __init__(self, order: str) -> None:
        self.format = f"pcapng, {'little-endian' if order == '<' else 'big-endian'}"
        self.broken: str | None = None
        self.final = False
        self.other_blocks = 0
        self.position = 0
        self.frames = 0
        self._link_types: set[int] = set()
        self._start_section(order)

    @classmethod
    def open(cls, header: bytes) -> "PcapngRecords | None":
        """Return the blocks of a file that starts with these 12 bytes; None for another file."""
        order = _BYTE_ORDER_MARKS.get(header[8:12])
        return cls(order) if header[:4] == PCAPNG_MAGIC and order else None

    @property
    def link_types(self) -> list[int]:
        """See Parser."""
        return sorted(self._link_types)

    def walk(self, data: Bytes, most: int) -> tuple[Frames, int]:
        """Return the whole frames at the front of data, up to a number, and their blocks' length.

        The frames are of one section: the walk ends before another section.
        """
        content = data.data
        at = 0
        starts: list[int] = []
        declared: list[int] = []  # the frames before which each new interface comes
        while len(starts) < most:
            try:
                kind, length = self._whole_block(content, at)
            except _BrokenChainError as error:
                self.broken = str(error)
                break
            if not length or (kind == _SECTION and starts):
                break
            if kind in (_PACKET, _SIMPLE_PACKET, _OLD_PACKET):
                starts.append(at)
            elif kind == _SECTION:
                self._start_section(_BYTE_ORDER_MARKS[bytes(content[at + 8 : at + 12])])
                declared.clear()
            elif kind == _INTERFACE:
                self._add_interface(content[at : at + length])
                declared.append(len(starts))
            else:
                self.other_blocks += 1
            at += length
        later = len(declared) - np.searchsorted(declared, np.arange(len(starts)), side="right")
        known = len(self._interfaces) - later
        self.position += at
        self.frames += len(starts)
        return self._frames(data, np.array(starts, dtype=np.int64), known), at

    def _whole_block(self, content: memoryview, at: int) -> tuple[int, int]:
        """Return type and length of the block at an offset; length 0 if it is incomplete.

        Raises: _BrokenChainError if the place of the next block is unknown.
        """
        left = len(content) - at
        if left < _BLOCK_BYTES:
            return 0, 0
        kind, length = self._block.unpack_from(content, at)
        length_of = self._length
        byte = self.position + at
        if kind == _SECTION:
            mark = bytes(content[at + 8 : at + 12])
            if mark not in _BYTE_ORDER_MARKS:
                raise _BrokenChainError(f"section at byte {byte} has no byte order: {mark.hex()}")
            length_of = struct.Struct(_BYTE_ORDER_MARKS[mark] + "I")
            (length,) = length_of.unpack_from(content, at + 4)
        if not _LEAST_BYTES.get(kind, _BLOCK_BYTES) <= length <= LONGEST_RECORD_BYTES or length % 4:
            raise _BrokenChainError(f"block at byte {byte} claims {length} bytes")
        if length > left:
            return kind, 0
        (again,) = length_of.unpack_from(content, at + length - _LENGTH_BYTES)
        if again != length:
            raise _BrokenChainError(
                f"block at byte {byte} claims {length} bytes before and {again} behind"
            )
        if kind == _INTERFACE and len(self._interfaces) == _MOST_INTERFACES:
            self.final = True
            raise _BrokenChainError(f"more than {_MOST_INTERFACES} interfaces in a section")
        return kind, length

    def likely(self, content: memoryview, at: int, last_ns: int, *, last: bool) -> bool | None:
        """Tell whether a block starts at a byte; None if that takes more bytes."""
        del last_ns
        left = len(content) - at
        if left < _BLOCK_BYTES:
            return False if last else None
        (kind,) = struct.unpack_from(self._order + "I", content, at)
        order: str | None = self._order
        if kind == _SECTION:
            order = _BYTE_ORDER_MARKS.get(bytes(content[at + 8 : at + 12]))
        if kind not in _KNOWN or not order:
            return False
        (length,) = struct.unpack_from(order + "I", content, at + 4)
        least = _LEAST_BYTES.get(kind, _BLOCK_BYTES)
        if not least <= length <= _LONGEST_LIKELY_BYTES or length % 4:
            return False
        if length > left:
            return False if last else None
        (again,) = struct.unpack_from(order + "I", content, at + length - _LENGTH_BYTES)
        return bool(again == length)

    def _start_section(self, order: str) -> None:
        self._order = order
        self._block = struct.Struct(order + "II")
        self._length = struct.Struct(order + "I")
        self._simple_header = np.dtype([("kind", order + "u4"), ("length", order + "u4")])
        self._header = np.dtype(
            [
                *self._simple_header.descr,
                ("interface", order + "u4"),
                ("upper", order + "u4"),
                ("lower", order + "u4"),
                ("captured", order + "u4"),
                ("original", order + "u4"),
            ]
        )
        self._interfaces: list[_Interface] = []

    def _add_interface(self, block: memoryview) -> None:
        """Take an interface description block; options behind a malformed one are ignored."""
        interface = _Interface(*struct.unpack_from(self._order + "H", block, 8))
        at, end = 16, len(block) - _LENGTH_BYTES
        while at + 4 <= end:
            code, length = struct.unpack_from(self._order + "HH", block, at)
            at += 4
            if code == 0 or length > end - at:
                break
            if code == _OPTION_RESOLUTION and length == 1:
                interface.resolution = block[at]
            elif code == _OPTION_OFFSET and length == 8:
                (interface.offset_s,) = struct.unpack_from(self._order + "q", block, at)
            at += -(-length // 4) * 4
        self._interfaces.append(interface)
        self._link_types.add(interface.link_type)

    def _frames(self, data: Bytes, at: IntArray, known: IntArray) -> Frames:
        """Return the frames of the packet blocks at these offsets.

        Args:
            data: holds the blocks whole.
            at: shape (n,).
            known: shape (n,), number of interfaces declared before each.
        """
        frames = Frames.none_yet(len(at))
        frames.start = at + _FRAME_AT
        kind = headers_at(data, at, self._simple_header)["kind"]
        simple = kind == _SIMPLE_PACKET
        frames.fate[simple] = np.where(known[simple] > 0, Fate.NO_TIMESTAMP, Fate.NO_INTERFACE)
        full = np.flatnonzero(~simple)
        header = headers_at(data, at[full], self._header)
        interface = header["interface"].astype(np.int64)
        if (kind[full] == _OLD_PACKET).any():  # it has 16 bits for this, then 16 for drops
            halves = header["interface"].astype(self._order + "u4").view(self._order + "u2")
            interface = np.where(kind[full] == _OLD_PACKET, halves[::2], interface)
        frames.captured[full] = header["captured"]
        frames.original[full] = header["original"]
        room = header["length"].astype(np.int64) - _FRAME_AT - _LENGTH_BYTES
        whole = frames.captured[full] <= room
        sound = (interface < known[full]) & whole
        frames.fate[full[~sound]] = Fate.NO_INTERFACE
        frames.fate[full[~whole]] = Fate.MALFORMED
        ticks = header["upper"].astype(np.uint64) << np.uint64(32) | header["lower"]
        self._place(frames, full[sound], interface[sound], ticks[sound])
        return frames

    def _place(self, frames: Frames, rows: IntArray, interface: IntArray, ticks: UintArray) -> None:
        """Set link type and time of some frames from their interfaces."""
        numbers, which = np.unique(interface, return_inverse=True)
        used = [self._interfaces[number] for number in numbers]
        frames.interface[rows] = np.minimum(interface, 0xFFFF)
        frames.link_type[rows] = np.array([i.link_type for i in used], dtype=np.int64)[which]
        frames.time_ns[rows], within = time_ns(
            ticks,
            np.array([i.resolution for i in used], dtype=np.uint8)[which],
            np.array([i.offset_s for i in used], dtype=np.int64)[which],
        )
        frames.fate[rows[~within]] = Fate.BEYOND_2262
