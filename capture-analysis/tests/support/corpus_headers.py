"""Headers before IP (link types, tags, labels), and conversations with others before TCP."""

import struct
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from corpus_conversations import Datagram, Wrap, whole
from scapy.contrib.mpls import MPLS
from scapy.layers.inet import ICMP, IP, TCP, UDP, IPOption, IPOption_NOP, IPOption_RR
from scapy.layers.inet6 import (
    ICMPv6EchoRequest,
    IPv6,
    IPv6ExtHdrDestOpt,
    IPv6ExtHdrFragment,
    IPv6ExtHdrHopByHop,
    IPv6ExtHdrRouting,
    PadN,
    RouterAlert,
)
from scapy.layers.ipsec import AH, ESP
from scapy.layers.l2 import LLC, SNAP, CookedLinux, CookedLinuxV2, Dot1AD, Dot1Q, Ether
from scapy.layers.ppp import PPP, PPPoE
from scapy.packet import Packet, Raw

_MACS: dict[str, Any] = {"dst": "02:00:00:00:02:02", "src": "02:00:00:00:01:02"}
ETHER_TYPE = {4: 0x0800, 6: 0x86DD}
PPP_PROTOCOL = {4: 0x0021, 6: 0x0057}


@dataclass(frozen=True)
class Link:
    """A link type and the octets in front of IP.

    Attributes:
        link_type: as in the file.
        header: the octets, from IP's version and the length of the packet.
        versions: versions of IP that tshark knows it to carry.
    """

    link_type: int
    header: Callable[[int, int], bytes]
    versions: tuple[int, ...] = (4, 6)


def _stack(*layers: Packet) -> Callable[[int, int], bytes]:
    """Stack layers of scapy; the last one that names a protocol names IP."""

    def header(version: int, _: int) -> bytes:
        whole = layers[0].copy()
        for layer in layers[1:]:
            whole /= layer.copy()
        last = whole.lastlayer()
        if "type" in last.fieldtype:
            last.type = ETHER_TYPE[version]
        elif "proto" in last.fieldtype:
            last.proto = ETHER_TYPE[version]
        return bytes(whole)

    return header


def _pppoe(*layers: Packet) -> Callable[[int, int], bytes]:
    def header(version: int, length: int) -> bytes:
        whole = Ether(**_MACS)
        for layer in layers:
            whole /= layer.copy()
        whole.lastlayer().type = 0x8864
        return bytes(whole / PPPoE(len=length + 2) / PPP(proto=PPP_PROTOCOL[version]))

    return header


def _family(order: str, six: int = 0) -> Callable[[int, int], bytes]:
    def header(version: int, _: int) -> bytes:
        return struct.pack(order + "I", 2 if version == 4 else six)

    return header


def _snap(version: int, length: int) -> bytes:
    return bytes(Ether(**_MACS, type=length + 8) / LLC(dsap=0xAA, ssap=0xAA, ctrl=3)) + bytes(
        SNAP(OUI=0, code=ETHER_TYPE[version])
    )


def _ppp(start: bytes, octets: int = 2) -> Callable[[int, int], bytes]:
    def header(version: int, _: int) -> bytes:
        return start + PPP_PROTOCOL[version].to_bytes(octets)

    return header


def _cisco(version: int, _: int) -> bytes:
    return struct.pack(">BBH", 0x0F, 0, ETHER_TYPE[version])


def _wlan(kind: int, flags: int, start: bytes = b"", pad: int = 0) -> Callable[[int, int], bytes]:
    """Make 802.11 from its first two bytes, a header before it (radiotap), and padding behind."""
    length = 24 + 6 * (flags & 3 == 3) + (2 + 4 * (flags >> 7) if kind & 0x80 else 0)
    addresses = bytes.fromhex("020000000101 020000000202 020000000303")
    header = (bytes([kind, flags, 0, 0]) + addresses + bytes(length)[:length])[:length] + bytes(pad)

    def made(version: int, _: int) -> bytes:
        return start + header + b"\xaa\xaa\3\0\0\0" + ETHER_TYPE[version].to_bytes(2)

    return made


def _none(_: int, __: int) -> bytes:
    return b""


_LABEL, _BOTTOM = MPLS(label=100, s=0), MPLS(label=16, s=1)


def _pktap(link_type: int, inside: Callable[[int, int], bytes]) -> Callable[[int, int], bytes]:
    """Precede a link's header by macOS's of 108 octets; tshark counts these in the frame."""

    def header(version: int, length: int) -> bytes:
        return struct.pack("<III96x", 108, 1, link_type) + inside(version, length)

    return header


LINKS = {
    "ethernet": Link(1, _stack(Ether(**_MACS))),
    "vlan": Link(1, _stack(Ether(**_MACS), Dot1Q(vlan=5))),
    "vlan-priority": Link(1, _stack(Ether(**_MACS), Dot1Q(prio=7, vlan=0))),
    "qinq-88a8": Link(1, _stack(Ether(**_MACS), Dot1AD(vlan=5), Dot1Q(vlan=6))),
    "qinq-9100": Link(1, _stack(Ether(**_MACS, type=0x9100), Dot1Q(vlan=5), Dot1Q(vlan=6))),
    "qinq-8100": Link(1, _stack(Ether(**_MACS), Dot1Q(vlan=5), Dot1Q(vlan=6))),
    "three-tags": Link(1, _stack(Ether(**_MACS), *(Dot1Q(vlan=v) for v in (1, 2, 3)))),
    "mpls": Link(1, _stack(Ether(**_MACS, type=0x8847), _BOTTOM)),
    "mpls-three-labels": Link(1, _stack(Ether(**_MACS, type=0x8847), _LABEL, _LABEL, _BOTTOM)),
    "mpls-multicast": Link(1, _stack(Ether(**_MACS, type=0x8848), _BOTTOM)),
    "vlan-mpls": Link(1, _stack(Ether(**_MACS), Dot1Q(vlan=5, type=0x8847), _LABEL, _BOTTOM)),
    "pppoe": Link(1, _pppoe()),
    "vlan-pppoe": Link(1, _pppoe(Dot1Q(vlan=5))),
    "snap": Link(1, _snap),
    "ppp": Link(9, _ppp(b"\xff\3")),
    "ppp-bare": Link(9, _ppp(b"")),
    "ppp-compressed": Link(9, _ppp(b"", 1)),
    "ppp-hdlc": Link(50, _ppp(b"\xff\3")),
    "cisco-in-ppp-hdlc": Link(50, _cisco),
    "cisco-hdlc": Link(104, _cisco),
    "null-little": Link(0, _family("<"), (4,)),
    "null-big": Link(0, _family(">"), (4,)),
    "null-linux-6-little": Link(0, _family("<", 10), ()),
    "null-linux-6-big": Link(0, _family(">", 10), ()),
    "null-24": Link(0, _family("<", 24)),
    "null-28": Link(0, _family("<", 28)),
    "null-30": Link(0, _family("<", 30)),
    "null-30-big": Link(0, _family(">", 30)),
    "loop": Link(108, _family(">", 24)),
    "raw": Link(101, _none),
    "raw-12": Link(12, _none),
    "raw-14": Link(14, _none),
    "raw-ipv4": Link(228, _none, (4,)),
    "raw-ipv6": Link(229, _none, (6,)),
    "wlan": Link(105, _wlan(0x08, 1)),
    "wlan-from-ds": Link(105, _wlan(0x08, 2)),
    "wlan-four-addresses": Link(105, _wlan(0x88, 3)),
    "wlan-ht-control": Link(105, _wlan(0x88, 0x82)),
    "wlan-retry": Link(105, _wlan(0x88, 9)),
    "radiotap": Link(127, _wlan(0x88, 1, b"\0\0\x08\0" + bytes(4))),
    "radiotap-time": Link(127, _wlan(0x88, 1, b"\0\0\x12\0\3\0\0\0" + bytes(8) + b"\x20\0", 2)),
    "radiotap-two-words": Link(
        127, _wlan(0x88, 2, b"\0\0\x19\0\3\0\0\x80" + bytes(4) + bytes(12) + b"\x20", 2)
    ),
    "sll": Link(113, _stack(CookedLinux(pkttype=4, lladdrlen=6, src=bytes(6)))),
    "sll-vlan": Link(113, _stack(CookedLinux(proto=0x8100), Dot1Q(vlan=5))),
    "sll2": Link(276, _stack(CookedLinuxV2(ifindex=2, lladdrlen=6, src=bytes(6)))),
    "pktap-raw": Link(258, _pktap(12, _none), ()),
    "pktap-ethernet": Link(258, _pktap(1, _stack(Ether(**_MACS))), ()),
    "sll2-vlan": Link(276, _stack(CookedLinuxV2(proto=0x8100), Dot1Q(vlan=5))),
}


def _with(**fields: Any) -> Wrap:
    """Give some fields of the IP header other values."""

    def wrap(packet: Packet) -> Packet:
        for name, value in fields.items():
            setattr(packet, name, value)
        return packet

    return wrap


def _between(*layers: Packet) -> Wrap:
    """Put layers between IP and its payload."""

    def wrap(packet: Packet) -> Packet:
        inner = packet.payload
        outer = packet.copy()
        outer.remove_payload()
        for layer in layers:
            outer /= layer.copy()
        return outer / inner

    return wrap


_HOP = IPv6ExtHdrHopByHop(options=[RouterAlert()])
_DESTINATION = IPv6ExtHdrDestOpt(options=[PadN(optdata=bytes(12))])
_ROUTING = IPv6ExtHdrRouting(addresses=["2001:db8:9::9"], segleft=0)
_AH = AH(nh=6, payloadlen=4, spi=7, seq=1, icv=bytes(12), padding=b"")

WRAPS: dict[str, tuple[int, Wrap]] = {
    "record-route": (
        4,
        _with(options=[IPOption_RR(length=11, pointer=4, routers=["10.9.9.9"] * 2)]),
    ),
    "nops": (4, _with(options=[IPOption_NOP()] * 4)),
    "unknown-option": (4, _with(options=[IPOption(b"\x9e\x06abcd")])),
    "options-full": (4, _with(options=[IPOption_NOP()] * 40)),
    "tos-ttl": (4, _with(tos=0xB9, ttl=1, flags="DF")),
    "evil-bit": (4, _with(flags=4)),
    "ah": (4, _between(_AH)),
    "hop-by-hop": (6, _between(_HOP)),
    "destination": (6, _between(_DESTINATION)),
    "routing": (6, _between(_ROUTING)),
    "all-headers": (6, _between(_HOP, _DESTINATION, _ROUTING, _DESTINATION)),
    "atomic-fragment": (6, _between(IPv6ExtHdrFragment(id=9))),
    "hop-atomic-fragment": (6, _between(_HOP, IPv6ExtHdrFragment(id=9), _DESTINATION)),
    "ah-6": (6, _between(_AH)),
    "traffic-class": (6, _with(tc=0xB8, fl=0xFFFFF, hlim=1)),
}


@cache
def variants() -> dict[str, list[Datagram]]:
    """Return conversations by name."""
    found = {name: whole(50, version=each, wrap=wrap) for name, (each, wrap) in WRAPS.items()}
    talk = whole(51)
    found["fragments"] = [part for datagram in talk for part in _fragmented(datagram, 400)]
    found["fragments-first-last"] = found["fragments"][::-1]
    found["fragments-tiny"] = [part for datagram in talk for part in _fragmented(datagram, 8)][:60]
    talk_6 = whole(52, version=6)
    found["fragments-6"] = [part for datagram in talk_6 for part in _fragmented(datagram, 400)]
    found["total-length-0"] = [zero_length(datagram) for datagram in talk]
    found["not-tcp"] = _not_tcp(talk)
    return found


def _fragmented(datagram: Datagram, piece: int) -> list[Datagram]:
    """Make fragments, if the payload of IP is longer than a piece."""
    whole_ip = (IP if datagram.version == 4 else IPv6)(datagram.octets)
    content = bytes(whole_ip.payload)
    if len(content) <= piece:
        return [datagram]
    ends, number = {"src": whole_ip.src, "dst": whole_ip.dst}, datagram.time_ns % 2**32
    parts = []
    for first in range(0, len(content), piece):
        more, offset = first + piece < len(content), first // 8
        head: Packet
        if datagram.version == 4:
            head = IP(**ends, id=whole_ip.id, proto=6, frag=offset, flags="MF" if more else 0)
        else:
            fragment = IPv6ExtHdrFragment(nh=6, offset=offset, m=int(more), id=number)
            head = IPv6(**ends) / fragment
        octets = bytes(head / Raw(content[first : first + piece]))
        parts.append(Datagram(datagram.time_ns + first, datagram.version, octets))
    return parts


def zero_length(datagram: Datagram) -> Datagram:
    """Remove IP's length, as if a sender was captured before hardware segmentation."""
    octets = bytearray(datagram.octets)
    first = 2 if datagram.version == 4 else 4
    octets[first : first + 2] = bytes(2)
    return Datagram(datagram.time_ns, datagram.version, bytes(octets))


def _not_tcp(talk: list[Datagram]) -> list[Datagram]:
    """Make a conversation of TCP among other protocols."""
    ends: dict[str, Any]
    ends_6: dict[str, Any]
    ends, ends_6 = (
        {"src": "10.0.1.2", "dst": "10.0.2.2"},
        {"src": "2001:db8::1", "dst": "2001:db8::2"},
    )
    segment = IP(**ends) / TCP(sport=1, dport=2)
    others: list[tuple[int, Packet]] = [
        (4, IP(**ends) / UDP(sport=30000, dport=30001) / Raw(bytes(40))),
        (4, IP(**ends) / ICMP() / Raw(bytes(40))),
        (4, IP(**ends) / ICMP(type=3, code=1) / segment),
        (4, IP(**ends, proto=47) / Raw(bytes(40))),
        (4, IP(**ends, proto=132) / Raw(bytes(40))),
        (4, IP(**ends) / ESP(spi=1, seq=1, data=bytes(40))),
        (4, IP(**ends, proto=6, frag=100) / Raw(bytes(40))),
        (4, IP(**ends, proto=17, frag=100) / Raw(bytes(40))),
        (6, IPv6(**ends_6) / UDP(sport=30000, dport=30001) / Raw(bytes(40))),
        (6, IPv6(**ends_6) / ICMPv6EchoRequest()),
        (6, IPv6(**ends_6, nh=59) / Raw(bytes(40))),
        (6, IPv6(**ends_6) / IPv6ExtHdrDestOpt() / UDP(sport=30000, dport=30001)),
        (6, IPv6(**ends_6) / ESP(spi=1, seq=1, data=bytes(40))),
    ]
    mixed = list(talk)
    for n, (version, packet) in enumerate(others):
        where = 3 * n
        mixed.insert(where, Datagram(mixed[where].time_ns, version, bytes(packet)))
    return mixed
