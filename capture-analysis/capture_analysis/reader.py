"""Read a capture file into columns.

This is the seam: everything else knows packets only as `Packets`, numpy columns of equal
length. The reader behind it may be replaced without a word elsewhere.
"""

import struct
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from capture_analysis.errors import AnalysisError

IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

_PCAP_MAGIC_NS = 0xA1B23C4D
_PCAP_MAGIC_US = 0xA1B2C3D4
_FILE_HEADER_BYTES = 24
_RECORD_HEADER_BYTES = 16
_LINKTYPE_ETHERNET = 1
# Above it: whether the length of a trailing frame check sequence is known, and that length.
_LINKTYPE_MASK = 0x03FFFFFF
_ETHERNET_BYTES = 14
_ETHERTYPE_IPV4 = 0x0800
_TCP = 6
_FRAGMENT_OFFSET = 0x1FFF
# Ethernet, IPv4 without options, TCP without options: what every column needs.
_LEAST_BYTES = _ETHERNET_BYTES + 20 + 20

FLAG_FIN, FLAG_SYN, FLAG_RST, FLAG_ACK = 0x01, 0x02, 0x04, 0x10


@dataclass(frozen=True)
class Packets:
    """TCP/IPv4 packets of one capture, in file order; columns of shape (n,).

    Attributes:
        time_ns: capture time, ns since the epoch.
        frame_bytes: size on the wire as captured, link header included.
        payload_bytes: TCP payload, from the IP total length (the capture may be truncated).
        source, destination: IPv4 addresses as integers.
        source_port, destination_port: TCP ports.
        seq, ack: TCP sequence and acknowledgement numbers, 0..2^32-1.
        flags: TCP flags (FIN 1, SYN 2, RST 4, ACK 16).
        ip_id: IPv4 identification.
    """

    time_ns: IntArray
    frame_bytes: IntArray
    payload_bytes: IntArray
    source: IntArray
    destination: IntArray
    source_port: IntArray
    destination_port: IntArray
    seq: IntArray
    ack: IntArray
    flags: IntArray
    ip_id: IntArray
    ts_value: IntArray
    ts_echo: IntArray
    window: IntArray

    def __len__(self) -> int:
        return len(self.time_ns)

    def where(self, rows: BoolArray | IntArray) -> "Packets":
        """The packets selected by a mask or by row numbers."""
        return Packets(*(getattr(self, f.name)[rows] for f in fields(self)))

    def data(self) -> "Packets":
        """The packets that carry payload."""
        return self.where(self.payload_bytes > 0)

    def key(self) -> IntArray:
        """Shape (n,): a number that identifies a packet wherever on its path it was captured.

        From the connection, IP identification, sequence and acknowledgement numbers and length;
        Linux counts the identification per connection, so retransmissions differ.
        """
        mixed = np.zeros(len(self), dtype=np.uint64)
        for column in (
            self.source,
            self.destination,
            self.source_port,
            self.destination_port,
            self.seq,
            self.ack,
            self.ip_id,
            self.payload_bytes,
        ):
            mixed = (mixed ^ column.astype(np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
            mixed ^= mixed >> np.uint64(29)
        return mixed.view(np.int64)


def merge(parts: list[Packets]) -> Packets:
    """Several captures as one, in time order; equal times keep the order of the parts."""
    joined = Packets(
        *(np.concatenate([getattr(p, f.name) for p in parts]) for f in fields(Packets))
    )
    return joined.where(np.argsort(joined.time_ns, kind="stable"))


def read_capture(path: Path) -> Packets:
    """Read a classic pcap file of Ethernet frames.

    Frames that are not TCP/IPv4 are left out, and so are VLAN tags, IP options and fragments
    without a TCP header, none of which the testbed produces.

    Args:
        path: a file with microsecond or nanosecond time stamps, of either byte order.

    Raises: AnalysisError if the file is no such capture, ends inside a record, or kept too little
        of a frame to tell what it is.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise AnalysisError(f"{path}: cannot be read: {error.strerror}") from error
    order, fraction_ns = _file_header(path, content)
    offsets, seconds, fractions, captured, original = _records(path, content, order)
    data = np.frombuffer(content, dtype=np.uint8)
    whole = captured >= _LEAST_BYTES
    short = np.flatnonzero(~whole & (captured < original))
    if len(short):
        raise AnalysisError(
            f"{path}: record {short[0] + 1} kept {captured[short[0]]} bytes of"
            f" {original[short[0]]}; the snapshot length must be at least {_LEAST_BYTES}"
        )
    at = offsets[whole]
    u8, u16, u32 = _gatherers(data, at)
    ip_header = (u8(_ETHERNET_BYTES) & 15) * 4
    tcp = (
        (u16(12) == _ETHERTYPE_IPV4)
        & (u8(_ETHERNET_BYTES) >> 4 == 4)
        & (u8(_ETHERNET_BYTES + 9) == _TCP)
        & (ip_header == 20)  # options would move every field that follows
        & (u16(_ETHERNET_BYTES + 6) & _FRAGMENT_OFFSET == 0)
    )
    time_ns = (seconds * 1_000_000_000 + fractions * fraction_ns)[whole]
    # Offloads leave the total length 0 in packets too long for it.
    total = u16(_ETHERNET_BYTES + 2)
    ip_bytes = np.where(total == 0, original[whole] - _ETHERNET_BYTES, total)
    tcp_header = (u8(_ETHERNET_BYTES + 32) >> 4) * 4
    columns = Packets(
        time_ns=time_ns,
        frame_bytes=original[whole],
        payload_bytes=ip_bytes - ip_header - tcp_header,
        source=u32(_ETHERNET_BYTES + 12),
        destination=u32(_ETHERNET_BYTES + 16),
        source_port=u16(_ETHERNET_BYTES + 20),
        destination_port=u16(_ETHERNET_BYTES + 22),
        seq=u32(_ETHERNET_BYTES + 24),
        ack=u32(_ETHERNET_BYTES + 28),
        flags=u8(_ETHERNET_BYTES + 33),
        ip_id=u16(_ETHERNET_BYTES + 4),
        **_timestamps(data, at, u8, u16, tcp_header),
    )
    return columns.where(tcp)


def _timestamps(data, at, u8, u16, tcp_header):
    pad = np.concatenate((data, np.zeros(64, np.uint8)))
    b = [pad[at + 54 + i].astype(np.int64) for i in range(12)]
    has = (tcp_header >= 32) & (b[0] == 1) & (b[1] == 1) & (b[2] == 8)
    v = ((b[4] * 256 + b[5]) * 256 + b[6]) * 256 + b[7]
    e = ((b[8] * 256 + b[9]) * 256 + b[10]) * 256 + b[11]
    return {"ts_value": np.where(has, v, 0), "ts_echo": np.where(has, e, 0), "window": u16(48)}


def _file_header(path: Path, content: bytes) -> tuple[str, int]:
    """Byte order and the length of a time stamp's fraction in ns."""
    if len(content) < _FILE_HEADER_BYTES:
        raise AnalysisError(f"{path}: {len(content)} bytes is too short for a capture")
    for order in "<>":
        (magic,) = struct.unpack_from(order + "I", content)
        if magic in (_PCAP_MAGIC_NS, _PCAP_MAGIC_US):
            (link_type,) = struct.unpack_from(order + "I", content, 20)
            if link_type & _LINKTYPE_MASK != _LINKTYPE_ETHERNET:
                raise AnalysisError(f"{path}: link type {link_type} is not Ethernet")
            return order, 1 if magic == _PCAP_MAGIC_NS else 1000
    raise AnalysisError(f"{path}: not a pcap file (magic {content[:4].hex()})")


def _records(
    path: Path, content: bytes, order: str
) -> tuple[IntArray, IntArray, IntArray, IntArray, IntArray]:
    """Data offset, seconds, fraction, captured and original length of every record."""
    header = struct.Struct(order + "IIII")
    unpack = header.unpack_from
    rows: list[tuple[int, int, int, int, int]] = []
    offset, end = _FILE_HEADER_BYTES, len(content)
    while offset + _RECORD_HEADER_BYTES <= end:
        seconds, fraction, captured, original = unpack(content, offset)
        offset += _RECORD_HEADER_BYTES
        rows.append((offset, seconds, fraction, captured, original))
        offset += captured
    if offset != end:
        inside = len(rows) + (offset < end)  # a header too short to be unpacked is no row
        raise AnalysisError(f"{path}: ends inside record {inside}; the capture was cut off")
    columns = np.array(rows, dtype=np.int64).reshape(-1, 5).T
    return columns[0], columns[1], columns[2], columns[3], columns[4]


def _gatherers(
    data: NDArray[np.uint8], at: IntArray
) -> tuple[Callable[[int], IntArray], Callable[[int], IntArray], Callable[[int], IntArray]]:
    """Functions that gather one big-endian field of all packets at an offset in the frame."""

    def u8(offset: int) -> IntArray:
        return data[at + offset].astype(np.int64)

    def u16(offset: int) -> IntArray:
        return u8(offset) << 8 | u8(offset + 1)

    def u32(offset: int) -> IntArray:
        return u16(offset) << 16 | u16(offset + 2)

    return u8, u16, u32
