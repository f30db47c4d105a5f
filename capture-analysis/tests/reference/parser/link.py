"""From the start of frames to their IP headers, whatever link they were captured on."""

import numpy as np
from capture_analysis.columns import IntArray
from numpy.typing import NDArray

from reference.parser.frames import Cursor, Fate
from reference.parser.limits import MOST_TAGS

# EtherTypes.
_IPV4, _IPV6 = 0x0800, 0x86DD
_VLAN = (0x8100, 0x88A8, 0x9100)
_MPLS = (0x8847, 0x8848)
_PPPOE_SESSION = 0x8864
# Not EtherTypes: IP of the version that its first four bits tell; nothing that is known here.
_ANY_IP, _OTHER = -1, 0

# Link types whose header holds an EtherType: where it is, and the header's length.
_ETHERTYPE_AT = {1: (12, 14), 113: (14, 16), 276: (0, 20)}
_NULL, _LOOP = 0, 108
# Link types without a header.
_RAW = {12: _ANY_IP, 14: _ANY_IP, 101: _ANY_IP, 228: _IPV4, 229: _IPV6}

# What NULL and LOOP have for a header: an address family, of the BSDs, Darwin and Linux.
_FAMILIES = {2: _IPV4, 10: _IPV6, 24: _IPV6, 28: _IPV6, 30: _IPV6}
_FAMILY_BYTES = 4
_BOTTOM_OF_STACK = 0x100  # in the lower half of an MPLS label
_PPPOE = np.dtype([("session", "V6"), ("protocol", ">u2")])
_PPP_IPV4, _PPP_IPV6 = 0x0021, 0x0057

_TAG = np.dtype([("upper", ">u2"), ("lower", ">u2")])
_UINT8 = np.dtype([("value", "u1")])
_UINT16 = np.dtype([("value", ">u2")])
_UINT32 = np.dtype([("value", ">u4")])


def find_ip(frames: Cursor) -> NDArray[np.uint8]:
    """Move on to the IP header, in the frames that have one.

    Args:
        frames: at their first byte.

    Returns: shape (n,), IP's version of all frames; 0 if there is none.
    """
    protocol = np.full(len(frames.frames), _OTHER)
    link_type = frames.frames.link_type[frames.rows]
    for each in np.unique(link_type):
        _pass_link_header(frames.where(link_type == each), int(each), protocol)
    frames = frames.left()
    tagged = frames.where(~np.isin(protocol[frames.rows], (_IPV4, _IPV6, _OTHER)))
    if len(tagged):
        _pass_tags(tagged, protocol)
        frames = frames.left()
    version = np.select([protocol == _IPV4, protocol == _IPV6], [np.uint8(4), np.uint8(6)])
    frames.keep(version[frames.rows] > 0, Fate.NOT_IP)
    return version


def _pass_link_header(frames: Cursor, link_type: int, protocol: IntArray) -> None:
    """Go behind the link's own header, which says the protocol of each frame."""
    if link_type in _RAW:
        protocol[frames.rows] = _RAW[link_type]
    elif link_type in _ETHERTYPE_AT:
        offset, length = _ETHERTYPE_AT[link_type]
        frames = frames.need(length)
        protocol[frames.rows] = frames.read(_UINT16, offset)["value"]
        frames.skip(length)
    elif link_type in (_NULL, _LOOP):
        frames = frames.need(_FAMILY_BYTES)
        family = frames.read(_UINT32)["value"].astype(np.uint32)
        for number, version in _FAMILIES.items():
            it_is = family == number
            if link_type == _NULL:  # in the byte order of the host that captured it
                it_is |= family.byteswap() == number
            protocol[frames.rows[it_is]] = version
        frames.skip(_FAMILY_BYTES)
    else:
        frames.keep(np.zeros(len(frames), dtype=np.bool_), Fate.UNKNOWN_LINK_TYPE)


def _pass_tags(frames: Cursor, protocol: IntArray) -> None:
    """Go behind VLAN tags and MPLS labels, then PPPoE; changes the protocol to what follows."""
    tagged = frames
    for _ in range(MOST_TAGS):
        tagged = tagged.where(np.isin(protocol[tagged.rows], _VLAN + _MPLS)).need(_TAG.itemsize)
        now, tag = protocol[tagged.rows], tagged.read(_TAG)
        behind_label = np.where(tag["lower"] & _BOTTOM_OF_STACK, _ANY_IP, now)
        protocol[tagged.rows] = np.where(np.isin(now, _MPLS), behind_label, tag["lower"])
        tagged.skip(_TAG.itemsize)
    tagged.keep(~np.isin(protocol[tagged.rows], _VLAN + _MPLS), Fate.MALFORMED)
    frames = frames.left()
    session = frames.where(protocol[frames.rows] == _PPPOE_SESSION).need(_PPPOE.itemsize)
    ppp = session.read(_PPPOE)["protocol"]
    protocol[session.rows] = np.select([ppp == _PPP_IPV4, ppp == _PPP_IPV6], [_IPV4, _IPV6], _OTHER)
    session.skip(_PPPOE.itemsize)
    raw = frames.where(protocol[frames.rows] == _ANY_IP).need(1)
    version = raw.read(_UINT8)["value"] >> 4
    protocol[raw.rows] = np.select([version == 4, version == 6], [_IPV4, _IPV6], _OTHER)
