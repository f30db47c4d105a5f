"""From the start of frames to their IP headers, for any link type."""

import numpy as np
from capture_analysis.columns import IntArray
from numpy.typing import NDArray

from reference.parser.frames import Cursor, Fate
from reference.parser.limits import MOST_TAGS
from reference.parser.wlan import RADIOTAP, WLAN, llc

# EtherTypes.
_IPV4, _IPV6 = 0x0800, 0x86DD
_VLAN = (0x8100, 0x88A8, 0x9100)
_MPLS = (0x8847, 0x8848)
_PPPOE_SESSION = 0x8864
# Values that are not EtherTypes: IP whose first four bits give the version; an unknown protocol.
_ANY_IP, _OTHER = -1, 0
# PPP's protocol number follows.
_PPP = -2

# Link types whose header holds an EtherType: its place, and the header's length.
_ETHERTYPE_AT = {1: (12, 14), 104: (2, 4), 113: (14, 16), 276: (0, 20)}
_PPP_LINK, _PPP_OR_CISCO = 9, 50
_CISCO_ADDRESSES = (0x0F, 0x8F)
_PPP_ADDRESS = 0xFF03
_NULL, _LOOP = 0, 108
# Link types without a header.
_RAW = {12: _ANY_IP, 14: _ANY_IP, 101: _ANY_IP, 228: _IPV4, 229: _IPV6}

# The header of NULL and LOOP: an address family, of the BSDs, Darwin and Linux.
_FAMILIES = {2: _IPV4, 10: _IPV6, 24: _IPV6, 28: _IPV6, 30: _IPV6}
_FAMILY_BYTES = 4
_BOTTOM_OF_STACK = 0x100  # in the lower half of an MPLS label
_PPPOE_BYTES = 6
_LONGEST_LENGTH = 1500  # of IEEE 802.3
_SNAP = np.dtype([("llc", "V3"), ("oui", "V3"), ("type", ">u2")])
_PPP_IPV4, _PPP_IPV6 = 0x0021, 0x0057

_PKTAP = 258
_PKTAP_HEADER = np.dtype([("length", "<u4"), ("next", "<u4"), ("link_type", "<u4")])
_TAG = np.dtype([("upper", ">u2"), ("lower", ">u2")])
_UINT8 = np.dtype([("value", "u1")])
_UINT16 = np.dtype([("value", ">u2")])
_UINT32 = np.dtype([("value", ">u4")])


def pass_pktap(frames: Cursor) -> None:
    """Take macOS's header off frames of any interface; it begins with its length."""
    frames = frames.where(frames.frames.link_type[frames.rows] == _PKTAP).need(
        _PKTAP_HEADER.itemsize
    )
    header = frames.read(_PKTAP_HEADER)
    length = header["length"].astype(np.int64)
    good = (length >= _PKTAP_HEADER.itemsize) & (length <= frames.captured())
    good &= header["link_type"] != _PKTAP
    rows, length = frames.keep(good, Fate.MALFORMED).rows, length[good]
    whole = frames.frames
    whole.start[rows] += length
    whole.captured[rows] -= length
    whole.original[rows] -= length
    whole.link_type[rows] = header["link_type"][good]


def find_ip(frames: Cursor) -> tuple[NDArray[np.uint8], IntArray]:
    """Move on to the IP header, in the frames that have one.

    Args:
        frames: at their first byte.

    Returns: shape (n,), IP's version of all frames, 0 if there is none; and their two innermost
        VLANs, 4096 times the outer and the inner.
    """
    vlans = np.zeros(len(frames.frames), dtype=np.int64)
    protocol = np.full(len(frames.frames), _OTHER)
    link_type = frames.frames.link_type[frames.rows]
    for each in np.unique(link_type):
        _pass_link_header(frames.where(link_type == each), int(each), protocol)
    frames = frames.left()
    tagged = frames.where(~np.isin(protocol[frames.rows], (_IPV4, _IPV6, _OTHER)))
    if len(tagged):
        _pass_tags(tagged, protocol, vlans)
        frames = frames.left()
    version = np.select([protocol == _IPV4, protocol == _IPV6], [np.uint8(4), np.uint8(6)])
    frames.keep(version[frames.rows] > 0, Fate.NOT_IP)
    return version, vlans


def _pass_link_header(frames: Cursor, link_type: int, protocol: IntArray) -> None:
    """Skip the link's own header, which gives the protocol of each frame."""
    if link_type in _RAW:
        protocol[frames.rows] = _RAW[link_type]
    elif link_type in _ETHERTYPE_AT:
        offset, length = _ETHERTYPE_AT[link_type]
        frames = frames.need(length)
        protocol[frames.rows] = frames.read(_UINT16, offset)["value"]
        frames.skip(length)
    elif link_type in (_PPP_LINK, _PPP_OR_CISCO):
        if link_type == _PPP_OR_CISCO:
            cisco = np.isin(_first(frames, _UINT8), _CISCO_ADDRESSES)
            _pass_link_header(frames.where(cisco), 104, protocol)
            frames = frames.where(~cisco)
        protocol[frames.rows] = _PPP
        frames.where(_first(frames, _UINT16) == _PPP_ADDRESS).skip(2)
    elif link_type in (WLAN, RADIOTAP):
        _pass_wireless(frames, link_type, protocol)
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


def _pass_wireless(frames: Cursor, link_type: int, protocol: IntArray) -> None:
    """Skip the header of 802.11, one frame after the other."""
    for row in frames.rows.tolist():
        frame = frames.where(frames.rows == row)
        place = int(frames.place[row])
        kept = frames.data[place : place + int(frame.captured()[0])].tobytes()
        fate, offset = llc(kept, link_type)
        protocol[row] = _LONGEST_LENGTH  # LLC follows, as it does behind a length
        frame.keep(np.array([fate == Fate.PACKETS]), fate).skip(offset)


def _first(frames: Cursor, layout: np.dtype[np.void]) -> IntArray:
    """Read the value with which each frame begins; 0 if it is too short."""
    found = np.zeros(len(frames), dtype=np.int64)
    long = frames.captured() >= layout.itemsize
    found[long] = frames.where(long).read(layout)["value"] if long.any() else 0
    return found


def _is_length(protocol: IntArray) -> NDArray[np.bool_]:
    """Mark the EtherTypes that are lengths, behind which LLC follows."""
    return (protocol > 0) & (protocol <= _LONGEST_LENGTH)


def _pass_snap(frames: Cursor, protocol: IntArray) -> None:
    """Skip LLC with SNAP; frames with another header are not known."""
    long = frames.captured() >= _SNAP.itemsize
    protocol[frames.rows[~long]] = _OTHER
    frames = frames.where(long)
    header = frames.read(_SNAP)
    snap = np.array(
        [bytes(h["llc"]) + bytes(h["oui"]) == b"\xaa\xaa\3\0\0\0" for h in header], bool
    )
    protocol[frames.rows] = np.where(snap, header["type"], _OTHER)
    frames.where(snap).skip(_SNAP.itemsize)


def _pass_ppp(frames: Cursor, protocol: IntArray) -> None:
    """Skip PPP's protocol number, of one byte or two."""
    frames = frames.need(1)
    short = (frames.read(_UINT8)["value"] & 1) > 0
    for rows, layout in ((frames.where(short), _UINT8), (frames.where(~short), _UINT16)):
        whole = rows.need(layout.itemsize)
        ppp = whole.read(layout)["value"]
        known = [ppp == _PPP_IPV4, ppp == _PPP_IPV6]
        protocol[whole.rows] = np.select(known, [_IPV4, _IPV6], _OTHER)
        whole.skip(layout.itemsize)


def _pass_tags(frames: Cursor, protocol: IntArray, vlans: IntArray) -> None:
    """Skip VLAN tags, SNAP, MPLS labels and PPP.

    Changes the protocol to the next one, and adds each VLAN except 0, which is only a priority's.
    """
    tagged = frames
    for _ in range(MOST_TAGS):
        now = protocol[tagged.rows]
        tagged = tagged.where(np.isin(now, _VLAN + _MPLS) | _is_length(now))
        length = _is_length(protocol[tagged.rows])
        labelled = tagged.where(~length).need(_TAG.itemsize)
        _pass_snap(tagged.where(length), protocol)
        now, tag = protocol[labelled.rows], labelled.read(_TAG)
        vlan, before = tag["upper"] & 0xFFF, vlans[labelled.rows]
        counts = np.isin(now, _VLAN) & (vlan > 0)
        vlans[labelled.rows] = np.where(counts, before % 4096 * 4096 + vlan, before)
        behind_label = np.where(tag["lower"] & _BOTTOM_OF_STACK, _ANY_IP, now)
        protocol[labelled.rows] = np.where(np.isin(now, _MPLS), behind_label, tag["lower"])
        labelled.skip(_TAG.itemsize)
        tagged = tagged.left()
    now = protocol[tagged.rows]
    tagged.keep(~(np.isin(now, _VLAN + _MPLS) | _is_length(now)), Fate.MALFORMED)
    frames = frames.left()
    session = frames.where(protocol[frames.rows] == _PPPOE_SESSION).skip(_PPPOE_BYTES)
    protocol[session.rows] = _PPP
    _pass_ppp(frames.where(protocol[frames.rows] == _PPP), protocol)
    frames = frames.left()
    raw = frames.where(protocol[frames.rows] == _ANY_IP).need(1)
    version = raw.read(_UINT8)["value"] >> 4
    protocol[raw.rows] = np.select([version == 4, version == 6], [_IPV4, _IPV6], _OTHER)
