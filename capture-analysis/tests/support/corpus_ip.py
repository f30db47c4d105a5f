"""Conversations with each kind of header that may lie between IP and TCP."""

from functools import cache
from typing import Any

from corpus_conversations import Datagram, Wrap, whole
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
from scapy.packet import Packet, Raw


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
    found["fragments-6"] = [part for datagram in talk_6 for part in _fragmented_6(datagram, 400)]
    found["total-length-0"] = [zero_length(datagram) for datagram in talk]
    found["not-tcp"] = _not_tcp(talk)
    return found


def _fragmented(datagram: Datagram, piece: int) -> list[Datagram]:
    """Make IPv4 fragments, if the payload of IP is longer than a piece."""
    whole_ip = IP(datagram.octets)
    content = bytes(whole_ip.payload)
    if len(content) <= piece:
        return [datagram]
    parts = []
    for first in range(0, len(content), piece):
        last = first + piece >= len(content)
        head = IP(
            src=whole_ip.src,
            dst=whole_ip.dst,
            id=whole_ip.id,
            proto=6,
            frag=first // 8,
            flags=0 if last else "MF",
        )
        octets = bytes(head / Raw(content[first : first + piece]))
        parts.append(Datagram(datagram.time_ns + first, 4, octets))
    return parts


def _fragmented_6(datagram: Datagram, piece: int) -> list[Datagram]:
    """Make IPv6 fragments, if the payload of IP is longer than a piece."""
    whole_ip = IPv6(datagram.octets)
    content = bytes(whole_ip.payload)
    if len(content) <= piece:
        return [datagram]
    parts = []
    for first in range(0, len(content), piece):
        more = int(first + piece < len(content))
        head = IPv6(src=whole_ip.src, dst=whole_ip.dst) / IPv6ExtHdrFragment(
            nh=6, offset=first // 8, m=more, id=datagram.time_ns % 2**32
        )
        octets = bytes(head / Raw(content[first : first + piece]))
        parts.append(Datagram(datagram.time_ns + first, 6, octets))
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
