"""Frames of IEEE 802.11."""

import struct

from reference.parser.frames import LeftOutError

WLAN, RADIOTAP = 105, 127
_DATA, _QOS_DATA = 0x08, 0x88  # first bytes, without the bits 4 and 5


def find_llc(frame: bytes, link_type: int) -> int:
    """Find the start of LLC in a frame with a packet."""
    at, padded = 0, False
    if link_type == RADIOTAP:
        if len(frame) < 8 or len(frame) < (at := int.from_bytes(frame[2:4], "little")):
            raise LeftOutError("too_short")
        if frame[0] or at < 8:
            raise LeftOutError("malformed")
        padded = _padded(frame[:at])
    length = _header_bytes(frame[at:])
    return at + (-(-length // 4) * 4 if padded else length)


def _header_bytes(frame: bytes) -> int:
    if len(frame) < 2:
        raise LeftOutError("too_short")
    kind, flags = frame[0] & 0xCF, frame[1]
    if kind not in (_DATA, _QOS_DATA):
        raise LeftOutError("not_ip")
    qos = kind == _QOS_DATA
    addresses = 24 + 6 * (flags & 3 == 3)
    length = addresses + (2 + 4 * (flags >> 7) if qos else 0)
    if len(frame) < length:
        raise LeftOutError("too_short")
    if flags & 0x40:
        raise LeftOutError("encrypted")
    if qos and frame[addresses] & 0x80:
        raise LeftOutError("aggregated")
    if frame[22] & 0xF:
        raise LeftOutError("later_fragments")
    return length


def _padded(radiotap: bytes) -> bool:
    """Tell whether radiotap says that the header behind it is padded."""
    words = [struct.unpack_from("<I", radiotap, at)[0] for at in range(4, len(radiotap) - 3, 4)]
    count = 1 + next((n for n, word in enumerate(words) if not word >> 31), len(words))
    at = 4 + 4 * count
    if words[0] & 1:
        at = -(-at // 8) * 8 + 8
    return bool(words[0] & 2) and at < len(radiotap) and bool(radiotap[at] & 0x20)
