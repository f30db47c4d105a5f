"""From the start of a frame to the fields of its packet, behind tags, radio headers, tunnels."""

import struct
from dataclasses import dataclass

from capture_analysis.columns import Mark
from capture_analysis.flow_table import NO_SCALE, SCALE_CUT, TCP, UDP
from capture_analysis.reading.parsing import Counts

from reference.parser.records import Frame, LeftOutError

# Limits that no real capture exceeds; clib has the same. Tags: with MPLS labels.
_MOST_TAGS = _MOST_EXTENSION_HEADERS = 8
_MOST_WINDOW_SCALE = 14  # RFC 7323, 2.3: a greater shift count is taken as 14

# EtherTypes.
_IPV4, _IPV6 = 0x0800, 0x86DD
_VLAN = (0x8100, 0x88A8, 0x9100)
_MPLS = (0x8847, 0x8848)
_PPPOE_SESSION = 0x8864
# Values that are not EtherTypes: IP whose first four bits give the version; an unknown protocol;
# PPP's protocol number follows.
_ANY_IP, _OTHER, _PPP = -1, 0, -2
_LONGEST_LENGTH = 1500  # of IEEE 802.3, behind which LLC follows

# Link types whose header holds an EtherType: its place, and the header's length.
_ETHERTYPE_AT = {1: (12, 14), 104: (2, 4), 113: (14, 16), 276: (0, 20)}
_PPP_LINK, _PPP_OR_CISCO = 9, 50
_NULL, _LOOP = 0, 108
_RAW = {12: _ANY_IP, 14: _ANY_IP, 101: _ANY_IP, 228: _IPV4, 229: _IPV6}
# The header of NULL and LOOP: an address family, of the BSDs, Darwin and Linux.
_FAMILIES = {2: _IPV4, 10: _IPV6, 24: _IPV6, 28: _IPV6, 30: _IPV6}
_PKTAP, _PKTAP_BYTES = 258, 12
_WLAN, _RADIOTAP = 105, 127
_DATA, _QOS_DATA = 0x08, 0x88  # first bytes of IEEE 802.11, without the bits 4 and 5

# Tunnels.
_ETHERNET, _RAW_LINK = 1, 101
_MOST_TUNNELS = 4
_IPV4_IN_IP, _IPV6_IN_IP, _GRE = 4, 41, 47
_ETHERNET_TYPE, _ERSPAN_II, _ERSPAN_III = 0x6558, 0x88BE, 0x22EB

# Extension headers that may precede TCP: hop by hop, routing, fragment, authentication,
# destination, mobility, HIP, Shim6.
_EXTENSIONS = (0, 43, 44, 51, 60, 135, 139, 140)
_FRAGMENT, _AUTHENTICATION = 44, 51
_MAPPED = 0xFFFF << 32  # IPv4 addresses stand as ::ffff:a.b.c.d
_FIRST_TTLS = (64, 128, 255)  # with which hosts send


Inner = tuple[str, int, int]  # name of a tunnel, offset of its content, its link type


class Cursor:
    """A reading position in a frame."""

    def __init__(self, octets: bytes) -> None:
        self.octets, self.at = octets, 0

    @property
    def left(self) -> bytes:
        """The captured bytes from here on."""
        return self.octets[self.at :]

    def peek(self, layout: str, offset: int = 0) -> tuple[int, ...]:
        """Read fields some bytes on, in network order, without a move."""
        if len(self.octets) - self.at < offset + struct.calcsize(">" + layout):
            raise LeftOutError("too_short")
        return struct.unpack_from(">" + layout, self.octets, self.at + offset)

    def take(self, layout: str) -> tuple[int, ...]:
        """Read fields, and move behind them."""
        found = self.peek(layout)
        self.at += struct.calcsize(">" + layout)
        return found


@dataclass
class Found:
    """The fields of a packet; left_bytes: the rest of the datagram, from the cursor on."""

    version: int = 0
    vlans: int = 0
    protocol: int = 0
    later: bool = False
    source: int = 0
    destination: int = 0
    source_port: int = 0
    destination_port: int = 0
    left_bytes: int = 0
    ip_id: int = 0
    marks: int = 0
    payload_bytes: int = 0
    seq: int = 0
    ack: int = 0
    ts_value: int = 0
    ts_echo: int = 0
    sack_left: int = 0
    sack_right: int = 0
    window: int = 0
    flags: int = 0
    mss: int = 0
    window_scale: int = NO_SCALE


def read_packet(frame: Frame, counts: Counts, *, every_protocol: bool, inside: bool) -> Found:
    """Return a frame's packet.

    Args:
        frame: the frame; tunnels' headers are taken off.
        counts: its tunnels are counted.
        every_protocol: True to keep other protocols than TCP, and all fragments.
        inside: True to read the packets in tunnels.

    Raises: LeftOutError.
    """
    for depth in range(_MOST_TUNNELS + 1):
        cursor = Cursor(frame.octets)
        found = _read_ip(cursor, frame)
        if found.protocol == TCP and not found.later:
            _read_segment(cursor, found)
            return found
        if every_protocol:
            _read_other(cursor, found)
            return found
        if found.later:
            ipv6_or_tcp = found.version == 6 or found.protocol == TCP
            raise LeftOutError("later_fragments" if ipv6_or_tcp else "not_tcp")
        name, offset, link_type = _find_tunnel(cursor, found)
        if not depth:
            setattr(counts, f"tunnels_{name}", getattr(counts, f"tunnels_{name}") + 1)
        if not inside or depth == _MOST_TUNNELS:
            break
        if offset > len(frame.octets):
            raise LeftOutError("too_short")
        frame.original, frame.octets = frame.bytes - offset, frame.octets[offset:]
        frame.link_type = link_type
    raise LeftOutError("not_tcp")


def _find_tunnel(cursor: Cursor, found: Found) -> Inner:
    """Return the name of the frame's tunnel, and offset and link type of its content."""
    outer = cursor.left
    tunnel: Inner | None = None
    if found.protocol in (_IPV4_IN_IP, _IPV6_IN_IP):
        tunnel = "ip", 0, _RAW_LINK
    elif found.protocol == _GRE:
        tunnel = _gre(outer)
    elif found.protocol == UDP and len(outer) >= 16:
        tunnel = _udp(outer, int.from_bytes(outer[2:4]))
    if tunnel is None:
        short = found.protocol == UDP and len(outer) < 8
        raise LeftOutError("too_short" if short else "not_tcp")
    name, offset, link_type = tunnel
    return name, min(cursor.at, len(cursor.octets)) + offset, link_type


def pass_pktap(frame: Frame) -> None:
    """Take macOS's header off a frame of any interface; it begins with its length."""
    if frame.left_out:
        raise LeftOutError(frame.left_out)
    if frame.link_type != _PKTAP:
        return
    if len(frame.octets) < _PKTAP_BYTES:
        raise LeftOutError("too_short")
    length, link_type = (int.from_bytes(frame.octets[at : at + 4], "little") for at in (0, 8))
    if not _PKTAP_BYTES <= length <= len(frame.octets) or link_type == _PKTAP:
        raise LeftOutError("malformed")
    frame.octets, frame.original = frame.octets[length:], frame.original - length
    frame.link_type = link_type


def _read_ip(cursor: Cursor, frame: Frame) -> Found:
    """Read all headers before the payload of IP."""
    found = Found()
    protocol = _pass_tags(cursor, _pass_link_header(cursor, frame.link_type), found)
    if protocol == _IPV4:
        _read_ipv4(cursor, found, frame.bytes - cursor.at)
    elif protocol == _IPV6:
        _read_ipv6(cursor, found, frame.bytes - cursor.at)
    else:
        raise LeftOutError("not_ip")
    return found


def _pass_link_header(cursor: Cursor, link_type: int) -> int:
    """Pass the link's own header, which gives the protocol."""
    left = cursor.left
    if link_type in _RAW:
        return _RAW[link_type]
    if link_type in _ETHERTYPE_AT:
        offset, length = _ETHERTYPE_AT[link_type]
        cursor.peek(f"{length}x")
        (protocol,) = cursor.peek("H", offset)
        cursor.at += length
        return protocol
    if link_type in (_PPP_LINK, _PPP_OR_CISCO):
        if link_type == _PPP_OR_CISCO and left[:1] in (b"\x0f", b"\x8f"):
            return _pass_link_header(cursor, 104)
        cursor.at += 2 * left.startswith(b"\xff\3")
        return _PPP
    if link_type in (_WLAN, _RADIOTAP):
        cursor.at += _find_llc(left, link_type)
        return _LONGEST_LENGTH
    if link_type in (_NULL, _LOOP):
        (family,) = cursor.take("I")
        if link_type == _NULL:  # in the byte order of the host that captured it
            family = min(family, int.from_bytes(left[:4], "little"))
        return _FAMILIES.get(family, _OTHER)
    raise LeftOutError("unknown_link_type")


def _pass_tags(cursor: Cursor, protocol: int, found: Found) -> int:
    """Pass VLAN tags, SNAP, MPLS labels and PPP; return the protocol behind them.

    A VLAN of 0 is only a priority's.
    """
    for _ in range(_MOST_TAGS):
        if _is_tagged(protocol):
            protocol = _pass_tag(cursor, protocol, found)
    if _is_tagged(protocol):
        raise LeftOutError("malformed")
    if protocol == _PPPOE_SESSION:
        cursor.at, protocol = cursor.at + 6, _PPP
    if protocol == _PPP:
        (number,) = cursor.take("B" if cursor.peek("B")[0] & 1 else "H")
        protocol = {0x21: _IPV4, 0x57: _IPV6}.get(number, _OTHER)
    if protocol == _ANY_IP:
        protocol = {4: _IPV4, 6: _IPV6}.get(cursor.peek("B")[0] >> 4, _OTHER)
    return protocol


def _is_tagged(protocol: int) -> bool:
    return protocol in _VLAN + _MPLS or 0 < protocol <= _LONGEST_LENGTH


def _pass_tag(cursor: Cursor, protocol: int, found: Found) -> int:
    if protocol <= _LONGEST_LENGTH:
        snap = len(cursor.left) >= 8 and cursor.left.startswith(b"\xaa\xaa\3\0\0\0")
        return cursor.take("6xH")[0] if snap else _OTHER
    upper, lower = cursor.take("HH")
    if protocol in _MPLS:
        return _ANY_IP if lower & 0x100 else protocol
    if vlan := upper & 0xFFF:
        found.vlans = found.vlans % 4096 * 4096 + vlan
    return lower


def _take_length(found: Found, length: int, room: int) -> None:
    """Set the datagram's length from its header, or else from the frame's room for it."""
    found.left_bytes = length or room
    found.marks |= Mark.LENGTH_GUESSED * (not length) | Mark.LENGTH_BEYOND * (length > room)


def _read_ipv4(cursor: Cursor, found: Found, room: int) -> None:
    first, service, total, found.ip_id, fragment, ttl, found.protocol, source, destination = (
        cursor.peek("BBHHHBBxxII")
    )
    header_bytes = (first & 15) * 4
    if first >> 4 != 4 or header_bytes < 20:
        raise LeftOutError("malformed")
    found.version = 4
    _take_length(found, total, room)
    found.source, found.destination = source | _MAPPED, destination | _MAPPED
    found.marks |= Mark.FIRST_FRAGMENT * (fragment & 0x3FFF == 0x2000)
    found.marks |= Mark.ECT_1 * (service & 3) | Mark.FIRST_TTL * (ttl in _FIRST_TTLS)
    found.later = fragment & 0x1FFF != 0
    found.left_bytes -= header_bytes
    cursor.at += header_bytes


def _read_ipv6(cursor: Cursor, found: Found, room: int) -> None:
    word, payload_bytes, found.protocol, ttl, *addresses = cursor.peek("IHBBQQQQ")
    if word >> 28 != 6:
        raise LeftOutError("malformed")
    found.version = 6
    _take_length(found, payload_bytes and payload_bytes + 40, room)
    found.source, found.destination = (
        addresses[0] << 64 | addresses[1],
        addresses[2] << 64 | addresses[3],
    )
    found.marks |= Mark.ECT_1 * (word >> 20 & 3) | Mark.FIRST_TTL * (ttl in _FIRST_TTLS)
    found.left_bytes -= 40
    cursor.at += 40
    for _ in range(_MOST_EXTENSION_HEADERS):
        if found.later or found.protocol not in _EXTENSIONS:
            return
        kind = found.protocol
        found.protocol, length, fragment = cursor.peek("BBH4x")
        length_bytes = (length + 2) * 4 if kind == _AUTHENTICATION else (length + 1) * 8
        if kind == _FRAGMENT:
            length_bytes, found.later = 8, fragment & 0xFFF8 != 0
            found.marks |= Mark.FIRST_FRAGMENT * (fragment & 1 and not found.later)
        found.left_bytes -= length_bytes
        cursor.at += length_bytes
    if not found.later and found.protocol in _EXTENSIONS:
        raise LeftOutError("malformed")


def _read_segment(cursor: Cursor, found: Found) -> None:
    """Read TCP's header (RFC 9293)."""
    header = cursor.peek("HHIIHHHxx")
    found.source_port, found.destination_port, found.seq, found.ack = header[:4]
    offset_flags, found.window, checksum = header[4:]
    header_bytes, found.flags = (offset_flags >> 12) * 4, offset_flags & 0x1FF
    if not 20 <= header_bytes <= found.left_bytes:
        raise LeftOutError("malformed")
    # The sum of the header that TCP's checksum covers, modulo 2^16 - 1.
    pseudo_header = (found.left_bytes & 0xFFFF) + TCP + found.source + found.destination
    unfilled = checksum == 0 or checksum % 0xFFFF == pseudo_header % 0xFFFF
    found.marks |= Mark.UNFILLED * unfilled
    found.payload_bytes = found.left_bytes - header_bytes
    segment = cursor.left
    _read_options(segment[20:header_bytes], header_bytes - 20, found)
    found.marks |= _read_tls(segment[header_bytes : header_bytes + min(found.payload_bytes, 12)])


def _read_options(captured: bytes, length: int, found: Found) -> None:
    """Read TCP's options, as far as they were captured; one of a wrong length does not count."""
    at = 0
    while at < length and captured[at : at + 1] != b"\0":
        kind = captured[at] if at < len(captured) else None
        size = 1 if kind == 1 else captured[at + 1] if at + 1 < len(captured) else 0
        if kind is None or size < 1 + (kind != 1) or at + size > len(captured):
            found.marks |= Mark.OPTIONS_CUT
            if found.window_scale == NO_SCALE:
                found.window_scale = SCALE_CUT
            return
        words = [int.from_bytes(captured[at + n : at + n + 4]) for n in (2, 6)]
        if kind == 8 and size == 10:
            found.ts_value, found.ts_echo = words
            found.marks |= Mark.TIMESTAMPS
        elif kind == 5 and size > 2 and size % 8 == 2:
            found.sack_left, found.sack_right = words
            found.marks |= Mark.SACK
        elif kind == 2 and size == 4:
            found.mss = int.from_bytes(captured[at + 2 : at + 4])
        elif kind == 3 and size == 3:
            found.window_scale = min(captured[at + 2], _MOST_WINDOW_SCALE)
        found.marks |= Mark.MPTCP * (kind == 30) | Mark.ACCECN * (kind in (172, 174))
        at += size


def _read_tls(payload: bytes) -> int:
    """Return the mark of the record of TLS with which a payload begins, or 0."""
    if payload.startswith(b"\x14\3") and payload[3:5] == b"\0\1":
        payload = payload[6:]
    if len(payload) < 6 or payload[1] != 3 or payload[2] > 4:
        return 0
    hellos = {1: Mark.CLIENT_HELLO, 2: Mark.SERVER_HELLO}
    if payload[0] == 23:
        return Mark.ENCRYPTED
    return hellos.get(payload[5], 0) if payload[0] == 22 else 0


def _read_other(cursor: Cursor, found: Found) -> None:
    """Read a packet of another protocol, or a fragment, with a hash (FNV-1a) of its first bytes."""
    header_bytes = 8 * (found.protocol == UDP and not found.later)
    if header_bytes:
        found.source_port, found.destination_port = cursor.peek("HH4x")
    if found.left_bytes < header_bytes:
        raise LeftOutError("malformed")
    found.payload_bytes = found.left_bytes - header_bytes
    mixed = 0xCBF29CE484222325
    for byte in cursor.left[: max(min(found.left_bytes, 40), 0)]:
        mixed = (mixed ^ byte) * 0x100000001B3 % 2**64
    found.seq, found.ack = mixed % 2**32, mixed >> 32


def _find_llc(frame: bytes, link_type: int) -> int:
    """Find the start of LLC in a frame of IEEE 802.11 with a packet."""
    at, padded = 0, False
    if link_type == _RADIOTAP:
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


def _gre(outer: bytes) -> Inner | None:
    if len(outer) < 4:
        return None
    flags, kind = struct.unpack_from(">HH", outer)
    at = 4 + 4 * sum(bool(flags & bit) for bit in (0x8000, 0x2000, 0x1000))
    if flags & 7:
        return None
    if kind == _ERSPAN_II:
        return "erspan", at + 8 * bool(flags & 0x1000), _ETHERNET
    if kind == _ERSPAN_III:
        optional = len(outer) >= at + 12 and outer[at + 11] & 1
        return "erspan", at + 12 + 8 * optional, _ETHERNET
    return _by_type("gre", at, kind)


def _by_type(name: str, at: int, kind: int) -> Inner | None:
    if kind in (_IPV4, _IPV6):
        return name, at, _RAW_LINK
    return (name, at, _ETHERNET) if kind == _ETHERNET_TYPE else None


def _udp(outer: bytes, port: int) -> Inner | None:
    header = outer[8:]
    if port in (4789, 8472):
        return ("vxlan", 16, _ETHERNET) if header[0] & 8 else None
    if port == 6081 and header[0] < 0x40:
        return _by_type("geneve", 16 + 4 * header[0], int.from_bytes(header[2:4]))
    return _gtp(header) if port == 2152 else None


def _gtp(header: bytes) -> Inner | None:
    if header[0] & 0xF0 != 0x30 or header[1] != 255:
        return None

    def octet(at: int) -> int:
        return header[at] if at < len(header) else 0

    at = 12 if header[0] & 7 else 8
    following = octet(11) if header[0] & 4 else 0
    passed = 0
    while following:
        if not octet(at) or passed == 8:
            return None
        at += 4 * octet(at)
        following = octet(at - 1)
        passed += 1
    return "gtp", 8 + at, _RAW_LINK
