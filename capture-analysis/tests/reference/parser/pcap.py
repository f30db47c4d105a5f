"""Records of a classic pcap file."""

import struct

import numpy as np
from capture_analysis.reading.parsing import PCAP_HEADER_BYTES

from reference.parser.frames import Bytes, Frames, headers_at

_MICROSECONDS, _NANOSECONDS, _MODIFIED = 0xA1B2C3D4, 0xA1B23C4D, 0xA1B2CD34
# The bits above give the length of a frame check sequence, and whether it is known.
_LINK_TYPE_MASK = 0x03FFFFFF
_LONGEST_FRAME_BYTES = 1 << 18  # libpcap's
_LIKELY_RECORDS, _LIKELY_APART_S = 3, 86400


class PcapRecords:
    """The records of a classic pcap file, read in pieces.

    Attributes:
        format: see Parser.
        link_types: see Parser.
        broken: the reason why the next record cannot be found.
        final: True if nothing more can be read then.
        other_blocks: always 0.
        position: bytes taken so far.
        frames: records taken so far.
    """

    def __init__(self, order: str, magic: int, header: bytes) -> None:
        (network,) = struct.unpack_from(order + "I", header, 20)
        self.link_types = [network & _LINK_TYPE_MASK]
        modified = magic == _MODIFIED
        self._header_bytes = 24 if modified else 16
        self._fraction_ns = 1 if magic == _NANOSECONDS else 1000
        self._captured_length = struct.Struct(order + "I")
        self._record = np.dtype(
            [(name, order + "u4") for name in ("seconds", "fraction", "captured", "original")]
        )
        endian = "little-endian" if order == "<" else "big-endian"
        unit = "ns" if magic == _NANOSECONDS else "us"
        self.format = f"pcap{' modified' if modified else ''}, {endian}, {unit}"
        self.broken: str | None = None
        self.final = False
        self.other_blocks = 0
        self.position = PCAP_HEADER_BYTES
        self.frames = 0

    @classmethod
    def open(cls, header: bytes) -> "PcapRecords | None":
        """Return the records of a file that starts with these 24 bytes; None for another file."""
        for order in "<>":
            (magic,) = struct.unpack_from(order + "I", header)
            if magic in (_MICROSECONDS, _NANOSECONDS, _MODIFIED):
                return cls(order, magic, header)
        return None

    def walk(self, data: Bytes, most: int) -> tuple[Frames, int]:
        """Return the whole records at the front of data, up to a number, and their length."""
        at, last = 0, len(data) - self._header_bytes
        starts: list[int] = []
        content = data.data
        length = self._captured_length.unpack_from
        while at <= last and len(starts) < most:
            (captured,) = length(content, at + 8)
            if captured > _LONGEST_FRAME_BYTES or not any(content[at : at + 16]):
                record, byte = self.frames + len(starts) + 1, self.position + at
                self.broken = f"record {record} at byte {byte} claims {captured} bytes"
                break
            if captured > last - at:
                break
            starts.append(at)
            at += self._header_bytes + captured
        self.frames += len(starts)
        self.position += at
        return self._frames(data, starts), at

    def _fields(self, content: memoryview, at: int) -> tuple[int, ...]:
        return struct.unpack_from(f"{self._captured_length.format[0]}IIII", content, at)

    def likely(self, content: memoryview, at: int, last_ns: int, *, last: bool) -> bool | None:
        """Tell whether records start at a byte; None if that takes more bytes."""
        before = None if last_ns < 0 else last_ns // 10**9
        for passed in range(_LIKELY_RECORDS):
            if len(content) - at >= self._header_bytes:
                seconds, fraction, captured, original = self._fields(content, at)
                if fraction >= 10**9 // self._fraction_ns:
                    return False
                if not 0 < captured <= original <= _LONGEST_FRAME_BYTES:
                    return False
                if before is not None and abs(seconds - before) > _LIKELY_APART_S:
                    return False
                before, end = seconds, at + self._header_bytes + captured
                if end <= len(content):
                    at = end
                    continue
            return passed > 0 if last else None
        return True

    def _frames(self, data: Bytes, starts: list[int]) -> Frames:
        at = np.array(starts, dtype=np.int64)
        record = headers_at(data, at, self._record)
        frames = Frames.none_yet(len(at))
        frames.start = at + self._header_bytes
        frames.captured[:] = record["captured"]
        frames.original[:] = record["original"]
        frames.time_ns[:] = record["seconds"]
        frames.time_ns *= 1_000_000_000
        fraction_ns = record["fraction"].astype(np.int64) * self._fraction_ns
        frames.time_ns += fraction_ns
        frames.fraction_beyond[:] = fraction_ns >= 1_000_000_000
        frames.link_type[:] = self.link_types[0]
        return frames
