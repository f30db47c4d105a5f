"""Frames in tunnels, one by one."""

import struct

ETHERNET, RAW = 1, 101
MOST_TUNNELS = 4
_IPV4, _IPV6, _GRE, _UDP = 4, 41, 47, 17
_IP_TYPES, _ETHERNET_TYPE, _ERSPAN_II, _ERSPAN_III = (0x0800, 0x86DD), 0x6558, 0x88BE, 0x22EB

Inner = tuple[str, int, int]  # name of the tunnel, offset of its content, its link type


def find_tunnel(outer: bytes, protocol: int) -> Inner | None:
    """Find the packet inside a tunnel's packet; None if there is no tunnel."""
    if protocol in (_IPV4, _IPV6):
        return "ip", 0, RAW
    if protocol == _GRE:
        return _gre(outer)
    if protocol == _UDP and len(outer) >= 16:
        return _udp(outer, int.from_bytes(outer[2:4]))
    return None


def _gre(outer: bytes) -> Inner | None:
    if len(outer) < 4:
        return None
    flags, kind = struct.unpack_from(">HH", outer)
    at = 4 + 4 * sum(bool(flags & bit) for bit in (0x8000, 0x2000, 0x1000))
    if flags & 7:
        return None
    if kind == _ERSPAN_II:
        return "erspan", at + 8 * bool(flags & 0x1000), ETHERNET
    if kind == _ERSPAN_III:
        optional = len(outer) >= at + 12 and outer[at + 11] & 1
        return "erspan", at + 12 + 8 * optional, ETHERNET
    return _by_type("gre", at, kind)


def _by_type(name: str, at: int, kind: int) -> Inner | None:
    if kind in _IP_TYPES:
        return name, at, RAW
    return (name, at, ETHERNET) if kind == _ETHERNET_TYPE else None


def _udp(outer: bytes, port: int) -> Inner | None:
    header = outer[8:]
    if port in (4789, 8472):
        return ("vxlan", 16, ETHERNET) if header[0] & 8 else None
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
    return "gtp", 8 + at, RAW
