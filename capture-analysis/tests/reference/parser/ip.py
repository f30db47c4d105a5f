"""From IP headers to TCP's, or to any other protocol's."""

from dataclasses import dataclass

import numpy as np
from capture_analysis.columns import BoolArray, IntArray, Mark
from capture_analysis.flow_table import TCP
from numpy.typing import NDArray

from reference.parser.frames import Cursor, Fate
from reference.parser.limits import MOST_EXTENSION_HEADERS

# The fragment offset's bits, and the flag that says that more fragments follow.
_IPV4_OFFSET, _IPV4_MORE = 0x1FFF, 0x2000
_IPV6_OFFSET, _IPV6_MORE = 0xFFF8, 0x0001
# Extension headers that may precede TCP, by their numbers.
_HOP_BY_HOP, _ROUTING, _FRAGMENT, _AUTHENTICATION, _DESTINATION = 0, 43, 44, 51, 60
_MOBILITY, _HIP, _SHIM6 = 135, 139, 140
# The TTLs with which hosts send.
_FIRST_TTLS = (64, 128, 255)
_EXTENSIONS = (
    _HOP_BY_HOP,
    _ROUTING,
    _FRAGMENT,
    _AUTHENTICATION,
    _DESTINATION,
    _MOBILITY,
    _HIP,
    _SHIM6,
)
# IPv4 addresses stand as ::ffff:a.b.c.d.
_MAPPED = np.uint64(0xFFFF << 32)

_IPV4_HEADER = np.dtype(
    [
        ("version_length", "u1"),
        ("service", "u1"),
        ("total_bytes", ">u2"),
        ("id", ">u2"),
        ("fragment", ">u2"),
        ("ttl", "u1"),
        ("protocol", "u1"),
        ("checksum", ">u2"),
        ("source", ">u4"),
        ("destination", ">u4"),
    ]
)
_IPV6_HEADER = np.dtype(
    [
        ("version_class", "u1"),
        ("class_label", "V3"),
        ("payload_bytes", ">u2"),
        ("next", "u1"),
        ("hop_limit", "u1"),
        ("source", ">u8", 2),
        ("destination", ">u8", 2),
    ]
)
# Every extension header has at least the size of a fragment header.
_EXTENSION = np.dtype([("next", "u1"), ("length", "u1"), ("fragment", ">u2"), ("id", ">u4")])


@dataclass
class Datagrams:
    """IP's fields of frames; columns of shape (n,) or (n, 2), with some rows filled in.

    Attributes:
        source, destination: addresses, upper and lower half.
        ip_id: IPv4 identification.
        left_bytes: rest of the datagram, from the frame's cursor on.
        protocol: the protocol in it.
        later: True for a fragment other than the first.
        marks: bits of Mark.
    """

    source: NDArray[np.uint64]
    destination: NDArray[np.uint64]
    ip_id: NDArray[np.uint16]
    left_bytes: IntArray
    protocol: NDArray[np.uint8]
    later: BoolArray
    marks: NDArray[np.uint16]

    @classmethod
    def none_yet(cls, count: int) -> "Datagrams":
        """Make a number of rows, to be filled in."""
        return cls(
            source=np.zeros((count, 2), dtype=np.uint64),
            destination=np.zeros((count, 2), dtype=np.uint64),
            ip_id=np.zeros(count, dtype=np.uint16),
            left_bytes=np.zeros(count, dtype=np.int64),
            protocol=np.zeros(count, dtype=np.uint8),
            later=np.zeros(count, dtype=np.bool_),
            marks=np.zeros(count, dtype=np.uint16),
        )


def find_transport(
    frames: Cursor, version: NDArray[np.uint8], *, every_protocol: bool
) -> Datagrams:
    """Move on to TCP's header, in the frames that have one; or to any other.

    Args:
        frames: at IP's header.
        version: shape (n,), IP's version of all frames.
        every_protocol: True to keep other protocols than TCP, and all fragments.
    """
    datagrams = Datagrams.none_yet(len(version))
    ipv4, ipv6 = (frames.where(version[frames.rows] == each) for each in (4, 6))
    if len(ipv4):
        _pass_ipv4(ipv4, datagrams)
    if len(ipv6):
        _pass_ipv6(ipv6, datagrams)
    if not every_protocol:
        left = frames.left()
        other = datagrams.protocol[left.rows] != TCP
        other &= (version[left.rows] == 4) | ~datagrams.later[left.rows]
        left = left.keep(~other, Fate.NOT_TCP)
        left.keep(~datagrams.later[left.rows], Fate.LATER_FRAGMENTS)
    return datagrams


def _pass_ipv4(frames: Cursor, datagrams: Datagrams) -> None:
    frames = frames.need(_IPV4_HEADER.itemsize)
    first = frames.read(_IPV4_HEADER)["version_length"]
    frames = frames.keep((first >> 4 == 4) & (first & 15 >= 5), Fate.MALFORMED)
    header, rows = frames.read(_IPV4_HEADER), frames.rows
    _set_length(frames, datagrams, header["total_bytes"].astype(np.int64))
    fragment = header["fragment"]
    _mark(
        frames, datagrams, fragment & (_IPV4_MORE | _IPV4_OFFSET) == _IPV4_MORE, Mark.FIRST_FRAGMENT
    )
    datagrams.source[rows, 1] = header["source"] | _MAPPED
    datagrams.destination[rows, 1] = header["destination"] | _MAPPED
    datagrams.ip_id[rows] = header["id"]
    datagrams.marks[rows] |= (header["service"] & 3).astype(np.uint16) * np.uint16(Mark.ECT_1)
    _mark_ttl(datagrams, rows, header["ttl"])
    datagrams.protocol[rows] = header["protocol"]
    datagrams.later[rows] = fragment & _IPV4_OFFSET != 0
    _skip(frames, datagrams, (header["version_length"] & 15).astype(np.int64) * 4)


def _pass_ipv6(frames: Cursor, datagrams: Datagrams) -> None:
    frames = frames.need(_IPV6_HEADER.itemsize)
    version = frames.read(_IPV6_HEADER)["version_class"] >> 4
    frames = frames.keep(version == 6, Fate.MALFORMED)
    header, rows = frames.read(_IPV6_HEADER), frames.rows
    payload_bytes = header["payload_bytes"].astype(np.int64)
    length = np.where(payload_bytes == 0, 0, payload_bytes + _IPV6_HEADER.itemsize)
    _set_length(frames, datagrams, length)
    datagrams.source[rows] = header["source"]
    datagrams.destination[rows] = header["destination"]
    _mark_ttl(datagrams, rows, header["hop_limit"])
    label = header["class_label"].copy().view("u1").reshape(-1, 3)
    datagrams.marks[rows] |= (label[:, 0] >> 4 & 3).astype(np.uint16) * np.uint16(Mark.ECT_1)
    _skip(frames, datagrams, _IPV6_HEADER.itemsize)
    datagrams.protocol[rows] = header["next"]
    for _ in range(MOST_EXTENSION_HEADERS):
        extended = frames.where(_is_extended(frames, datagrams))
        if not len(extended):
            break
        _pass_extension(extended, datagrams)
        frames = frames.left()
    frames.keep(~_is_extended(frames, datagrams), Fate.MALFORMED)


def _is_extended(frames: Cursor, datagrams: Datagrams) -> BoolArray:
    """Mark the frames with an extension header next."""
    rows = frames.rows
    return np.isin(datagrams.protocol[rows], _EXTENSIONS) & ~datagrams.later[rows]


def _pass_extension(frames: Cursor, datagrams: Datagrams) -> None:
    """Skip one extension header of each frame; the protocol becomes the announced one."""
    frames = frames.need(_EXTENSION.itemsize)
    header, kind = frames.read(_EXTENSION), datagrams.protocol[frames.rows]
    fragment = np.where(kind == _FRAGMENT, header["fragment"], 0)
    datagrams.later[frames.rows] = later = fragment & _IPV6_OFFSET != 0
    datagrams.protocol[frames.rows] = header["next"]
    _mark(frames, datagrams, (fragment & _IPV6_MORE != 0) & ~later, Mark.FIRST_FRAGMENT)
    length = header["length"].astype(np.int64)
    length_bytes = np.where(kind == _AUTHENTICATION, (length + 2) * 4, (length + 1) * 8)
    _skip(frames, datagrams, np.where(kind == _FRAGMENT, _EXTENSION.itemsize, length_bytes))


def _set_length(frames: Cursor, datagrams: Datagrams, length: IntArray) -> None:
    """Set the datagrams' lengths from their headers, or else from the frames.

    Args:
        frames: at IP's header.
        datagrams: the datagrams to change.
        length: shape (k,), 0 if the header gives none.
    """
    rows = frames.rows
    room = frames.frames.bytes[rows] - (frames.place[rows] - frames.frames.start[rows])
    datagrams.left_bytes[rows] = np.where(length == 0, room, length)
    _mark(frames, datagrams, length == 0, Mark.LENGTH_GUESSED)
    _mark(frames, datagrams, length > room, Mark.LENGTH_BEYOND)


def _mark_ttl(datagrams: Datagrams, rows: IntArray, ttl: NDArray[np.uint8]) -> None:
    datagrams.marks[rows] |= np.isin(ttl, _FIRST_TTLS) * np.uint16(Mark.FIRST_TTL)


def _mark(frames: Cursor, datagrams: Datagrams, which: BoolArray, mark: Mark) -> None:
    datagrams.marks[frames.rows[which]] |= np.uint8(mark)


def _skip(frames: Cursor, datagrams: Datagrams, count: IntArray | int) -> None:
    datagrams.left_bytes[frames.rows] -= count
    frames.skip(count)
