"""Records of a classic pcap file, and blocks of a pcapng file."""

import struct
from dataclasses import dataclass

from capture_analysis.reading.parsing import (
    LONGEST_RECORD_BYTES,
    PCAP_HEADER_BYTES,
    PCAPNG_MAGIC,
    not_a_capture,
)


class LeftOutError(Exception):
    """A frame is no packet; its argument is the field of Counts that counts it."""


@dataclass
class Frame:
    """A captured frame.

    Attributes:
        octets: the captured bytes.
        original: the original number of bytes in the record.
        time_ns: capture time, ns since the epoch.
        interface: number in the section, saturated at 65535.
        link_type: as in LINKTYPE_ numbers.
        fraction_beyond: True if the time has a fraction of a second or more.
        left_out: the field of Counts that counts the frame, if the record already says so.
    """

    octets: bytes
    original: int = 0
    time_ns: int = 0
    interface: int = 0
    link_type: int = 0
    fraction_beyond: bool = False
    left_out: str | None = None

    @property
    def bytes(self) -> int:
        """Return the size on the wire; some tools wrote an original length of 0."""
        return max(self.original, len(self.octets))


_MICROSECONDS, _NANOSECONDS, _MODIFIED = 0xA1B2C3D4, 0xA1B23C4D, 0xA1B2CD34
# The bits above give the length of a frame check sequence, and whether it is known.
_LINK_TYPE_MASK = 0x03FFFFFF
_LONGEST_FRAME_BYTES = 1 << 18  # libpcap's
_LIKELY_RECORDS, _LIKELY_APART_S = 3, 86400

_SECTION, _INTERFACE, _OLD_PACKET, _SIMPLE_PACKET, _PACKET = 0x0A0D0D0A, 1, 2, 3, 6
_LEAST_BYTES = {_SECTION: 28, _INTERFACE: 20, _OLD_PACKET: 32, _SIMPLE_PACKET: 16, _PACKET: 32}
_KNOWN = {_SECTION, *range(1, 7)}
_BLOCK_BYTES = 12  # type, length, and the length once more at the end
_FRAME_AT = 28  # in a packet block
_BYTE_ORDER_MARKS = {b"\x4d\x3c\x2b\x1a": "<", b"\x1a\x2b\x3c\x4d": ">"}
_MOST_INTERFACES = 1 << 20
_LONGEST_LIKELY_BYTES = 1 << 20


class ChainBrokenError(Exception):
    """The place of the next record is unknown."""


def open_records(header: bytes) -> "PcapRecords | PcapngRecords | None":
    """Return the records of a file that begins so; None if that takes more bytes.

    Raises: AnalysisError if it does not start like a capture.
    """
    order = _BYTE_ORDER_MARKS.get(header[8:12])
    if header[:4] == PCAPNG_MAGIC and order:
        return PcapngRecords(order)
    if len(header) < PCAP_HEADER_BYTES:
        return None
    for order in "<>":
        magic, network = struct.unpack_from(order + "I16xI", header)
        if magic in (_MICROSECONDS, _NANOSECONDS, _MODIFIED):
            return PcapRecords(order, magic, network & _LINK_TYPE_MASK)
    raise not_a_capture(header)


class PcapRecords:
    """The records of a classic pcap file.

    Attributes:
        format, link_types: see Parser.
        final: True if nothing more can be read after a broken record.
        other_blocks: blocks that are no frames.
        position: bytes taken so far.
        frames: frames taken so far.
    """

    final, other_blocks, frames = False, 0, 0

    def __init__(self, order: str, magic: int, link_type: int) -> None:
        modified, nanoseconds = magic == _MODIFIED, magic == _NANOSECONDS
        self._fields = struct.Struct(order + "IIII" + "8x" * modified)
        self._fraction_ns = 1 if nanoseconds else 1000
        endian = "little-endian" if order == "<" else "big-endian"
        unit = "ns" if nanoseconds else "us"
        self.format = f"pcap{' modified' if modified else ''}, {endian}, {unit}"
        self.link_types, self.position = [link_type], PCAP_HEADER_BYTES

    def read(self, content: memoryview) -> tuple[int, Frame | None]:
        """Return the length of the first record, 0 if it is not whole, and its frame.

        Raises: ChainBrokenError.
        """
        if len(content) < self._fields.size:
            return 0, None
        seconds, fraction, captured, original = self._fields.unpack_from(content)
        if captured > _LONGEST_FRAME_BYTES or not any(content[:16]):
            raise ChainBrokenError(
                f"record {self.frames + 1} at byte {self.position} claims {captured} bytes"
            )
        length = self._fields.size + captured
        if length > len(content):
            return 0, None
        fraction *= self._fraction_ns
        return length, Frame(
            bytes(content[self._fields.size : length]),
            original,
            seconds * 10**9 + fraction,
            link_type=self.link_types[0],
            fraction_beyond=fraction >= 10**9,
        )

    def likely(self, content: memoryview, at: int, last_ns: int, *, last: bool) -> bool | None:
        """Tell whether records start at a byte; None if that takes more bytes."""
        before = None if last_ns < 0 else last_ns // 10**9
        for passed in range(_LIKELY_RECORDS):
            if len(content) - at >= self._fields.size:
                seconds, fraction, captured, original = self._fields.unpack_from(content, at)
                if fraction >= 10**9 // self._fraction_ns:
                    return False
                if not 0 < captured <= original <= _LONGEST_FRAME_BYTES:
                    return False
                if before is not None and abs(seconds - before) > _LIKELY_APART_S:
                    return False
                before, end = seconds, at + self._fields.size + captured
                if end <= len(content):
                    at = end
                    continue
            return passed > 0 if last else None
        return True


@dataclass
class _Interface:
    """An interface of the section: ticks of 10^-r s, or of 2^-(r-128) s, from offset_s on."""

    link_type: int
    resolution: int = 6
    offset_s: int = 0

    def time_ns(self, ticks: int) -> int:
        """Return the time of a block, cut to ns."""
        r = self.resolution
        since = ticks * 10**9 >> (r & 0x7F) if r & 0x80 else ticks * 10**9 // 10**r
        return self.offset_s * 10**9 + since


class PcapngRecords:
    """The blocks of a pcapng file; attributes and methods as of PcapRecords."""

    position = frames = other_blocks = 0
    final = False

    def __init__(self, order: str) -> None:
        self.format = f"pcapng, {'little-endian' if order == '<' else 'big-endian'}"
        self._order, self._interfaces = order, list[_Interface]()
        self._link_types: set[int] = set()

    @property
    def link_types(self) -> list[int]:
        """The link types of the interfaces so far."""
        return sorted(self._link_types)

    def read(self, content: memoryview) -> tuple[int, Frame | None]:
        """Return the length of the first block, 0 if it is not whole, and its frame."""
        if len(content) < _BLOCK_BYTES:
            return 0, None
        byte, mark = self.position, bytes(content[8:12])
        kind, length = struct.unpack_from(self._order + "II", content)
        order = _BYTE_ORDER_MARKS.get(mark) if kind == _SECTION else self._order
        if order is None:
            raise ChainBrokenError(f"section at byte {byte} has no byte order: {mark.hex()}")
        (length,) = struct.unpack_from(order + "I", content, 4)
        claims = f"block at byte {byte} claims {length} bytes"
        if not _LEAST_BYTES.get(kind, _BLOCK_BYTES) <= length <= LONGEST_RECORD_BYTES or length % 4:
            raise ChainBrokenError(claims)
        if length > len(content):
            return 0, None
        (again,) = struct.unpack_from(order + "I", content, length - 4)
        if again != length:
            raise ChainBrokenError(f"{claims} before and {again} behind")
        self._order = order
        return length, self._read_block(content[:length], kind)

    def _read_block(self, block: memoryview, kind: int) -> Frame | None:
        if kind == _SIMPLE_PACKET:
            return Frame(b"", left_out="no_timestamp" if self._interfaces else "no_interface")
        if kind in (_PACKET, _OLD_PACKET):
            return self._frame(block, old=kind == _OLD_PACKET)
        if kind == _SECTION:
            self._interfaces.clear()
        elif kind == _INTERFACE:
            self._add_interface(block)
        else:
            self.other_blocks += 1
        return None

    def likely(self, content: memoryview, at: int, _last_ns: int, *, last: bool) -> bool | None:
        """Tell whether a block starts at a byte; None if that takes more bytes."""
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
        (again,) = struct.unpack_from(order + "I", content, at + length - 4)
        return bool(again == length)

    def _add_interface(self, block: memoryview) -> None:
        """Take an interface description block; options behind a malformed one are ignored."""
        if len(self._interfaces) == _MOST_INTERFACES:
            self.final = True
            raise ChainBrokenError(f"more than {_MOST_INTERFACES} interfaces in a section")
        interface = _Interface(*struct.unpack_from(self._order + "H", block, 8))
        at, end = 16, len(block) - 4
        while at + 4 <= end:
            code, length = struct.unpack_from(self._order + "HH", block, at)
            at += 4
            if code == 0 or length > end - at:
                break
            if code == 9 and length == 1:
                interface.resolution = block[at]
            elif code == 14 and length == 8:
                (interface.offset_s,) = struct.unpack_from(self._order + "q", block, at)
            at += -(-length // 4) * 4
        self._interfaces.append(interface)
        self._link_types.add(interface.link_type)

    def _frame(self, block: memoryview, *, old: bool) -> Frame:
        """Return the frame of a packet block; an older one also counts drops."""
        layout = "8xHxxIIII" if old else "8xIIIII"
        number, upper, lower, captured, original = struct.unpack_from(self._order + layout, block)
        if captured > len(block) - _FRAME_AT - 4:
            return Frame(b"", left_out="malformed")
        if number >= len(self._interfaces):
            return Frame(b"", left_out="no_interface")
        interface = self._interfaces[number]
        time_ns = interface.time_ns(upper << 32 | lower)
        if not -(2**63) <= time_ns < 2**63:
            return Frame(b"", left_out="beyond_2262")
        return Frame(
            bytes(block[_FRAME_AT : _FRAME_AT + captured]),
            original,
            time_ns,
            min(number, 0xFFFF),
            interface.link_type,
        )
