"""Frames of IEEE 802.11, one by one."""

import struct

from reference.parser.frames import Fate

WLAN, RADIOTAP = 105, 127
_DATA, _QOS_DATA = 0x08, 0x88  # first bytes, without the bits 4 and 5


def llc(frame: bytes, link_type: int) -> tuple[Fate, int]:
    """Find a frame's fate, and the start of LLC if it has a packet."""
    at, padded = 0, False
    if link_type == RADIOTAP:
        if len(frame) < 8 or len(frame) < (at := int.from_bytes(frame[2:4], "little")):
            return Fate.TOO_SHORT, 0
        if frame[0] or at < 8:
            return Fate.MALFORMED, 0
        padded = _padded(frame[:at])
    fate, length = _header(frame[at:])
    return fate, at + (-(-length // 4) * 4 if padded else length)


def _header(frame: bytes) -> tuple[Fate, int]:
    """Find a frame's fate, and the length of its header."""
    if len(frame) < 2:
        return Fate.TOO_SHORT, 0
    kind, flags = frame[0] & 0xCF, frame[1]
    if kind not in (_DATA, _QOS_DATA):
        return Fate.NOT_IP, 0
    qos = kind == _QOS_DATA
    addresses = 24 + 6 * (flags & 3 == 3)
    length = addresses + (2 + 4 * (flags >> 7) if qos else 0)
    if len(frame) < length:
        return Fate.TOO_SHORT, 0
    reasons = {
        Fate.ENCRYPTED: flags & 0x40,
        Fate.AGGREGATED: qos and frame[addresses] & 0x80,
        Fate.LATER_FRAGMENTS: frame[22] & 0xF,
    }
    return next((fate for fate, holds in reasons.items() if holds), Fate.PACKETS), length


def _padded(radiotap: bytes) -> bool:
    """Tell whether radiotap says that the header behind it is padded."""
    words = [struct.unpack_from("<I", radiotap, at)[0] for at in range(4, len(radiotap) - 3, 4)]
    count = 1 + next((n for n, word in enumerate(words) if not word >> 31), len(words))
    at = 4 + 4 * count
    if words[0] & 1:
        at = -(-at // 8) * 8 + 8
    return bool(words[0] & 2) and at < len(radiotap) and bool(radiotap[at] & 0x20)
