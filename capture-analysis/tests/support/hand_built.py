"""Captures built byte by byte: each format, link type and layer, even ones that no tool writes."""

import struct
from collections.abc import Iterable
from dataclasses import dataclass

from capture_analysis.columns import Mark

PAYLOAD = b"ten bytes."
TIMESTAMPS = b"\1\1\x08\x0a" + struct.pack(">II", 10, 20)
SYN_OPTIONS = b"\2\4\5\xb4\1\3\3\7"  # MSS 1460, window scale 7
SACK = b"\1\1\5\x0a" + struct.pack(">II", 5, 9)
MPTCP = b"\x1e\4\0\0"
ACCECN = b"\xac\x0b" + bytes(9), b"\xae\5\0\0\1"
# Begins of payloads: records of TLS, and what looks like one; with the marks of the first.
TLS = (
    (b"\x16\3\1\0\x50\1", Mark.CLIENT_HELLO),
    (b"\x16\3\3\0\x50\2", Mark.SERVER_HELLO),
    (b"\x17\3\3\0\x50a", Mark.ENCRYPTED),
    (b"\x14\3\3\0\1\1\x17\3\3\0\x20a", Mark.ENCRYPTED),
    (b"\x16\3\3\0\x50\x0b", 0),
    (b"\x15\3\3\0\2\1", 0),
    (b"\x17\2\3\0\x50a", 0),
    (b"\x17\3\5\0\x50a", 0),
)

SYN, ACK = 0x02, 0x10
MAGIC = {"us": 0xA1B2C3D4, "ns": 0xA1B23C4D, "modified": 0xA1B2CD34}


def tcp(options: bytes = b"", flags: int = ACK, **fields: int) -> bytes:
    """Make a header without payload; fields: source, destination, seq, ack, words, checksum."""
    options += bytes(-len(options) % 4)
    words = fields.get("words", (20 + len(options)) // 4)
    return (
        struct.pack(
            ">HHIIHHHH",
            fields.get("source", 1000),
            fields.get("destination", 2000),
            fields.get("seq", 1),
            fields.get("ack", 2),
            words << 12 | flags,
            500,
            fields.get("checksum", 1),
            0,
        )
        + options
    )


SEGMENT = tcp(TIMESTAMPS) + PAYLOAD


def ipv4(content: bytes = SEGMENT, protocol: int = 6, **fields: int) -> bytes:
    """Make a packet; fields: source, destination (last byte), fragment, total, first, ttl, ..."""
    header = 20 + fields.get("options", 0)
    return (
        struct.pack(
            ">BBHHHBBHII",
            fields.get("first", 0x40 | header // 4),
            0,
            fields.get("total", header + len(content)),
            7,
            fields.get("fragment", 0),
            fields.get("ttl", 63),
            protocol,
            0,
            0x0A000000 | fields.get("source", 1),
            0x0A000000 | fields.get("destination", 2),
        )
        + bytes(header - 20)
        + content
    )


def ipv6(content: bytes = SEGMENT, following: int = 6, **fields: int) -> bytes:
    """Make a packet; fields: payload (its length), version, ttl."""
    length = fields.get("payload", len(content))
    first = struct.pack(
        ">IHBB", fields.get("version", 6) << 28, length, following, fields.get("ttl", 63)
    )
    return first + bytes(15) + b"\1" + bytes(15) + b"\2" + content


def ethernet(content: bytes, kind: int = 0x0800) -> bytes:
    """Make a frame."""
    return bytes(12) + struct.pack(">H", kind) + content


def vlan(content: bytes, kind: int = 0x0800, tag: int = 1) -> bytes:
    """Build the bytes after a VLAN tag's EtherType; the lower 12 bits are the VLAN."""
    return struct.pack(">HH", tag, kind) + content


def tagged(content: bytes, *tags: int) -> bytes:
    """Make a frame of IPv4 in VLANs, the outer first."""
    kind = 0x0800
    for tag in reversed(tags):
        content, kind = vlan(content, kind, tag), 0x8100
    return ethernet(content, kind)


def mpls(content: bytes, labels: int = 1) -> bytes:
    """Make a stack of labels."""
    return b"\0\0\0\1" * (labels - 1) + b"\0\0\1\1" + content


def pppoe(content: bytes, protocol: int = 0x0021) -> bytes:
    """Build the bytes after the EtherType of a PPPoE session."""
    return struct.pack(">BBHHH", 0x11, 0, 1, len(content) + 2, protocol) + content


def wlan(content: bytes, kind: int = 0x08, flags: int = 1, **fields: int) -> bytes:
    """Make a frame of 802.11 from its first bytes; fields: qos, fragment, ethertype."""
    header = bytes([kind, flags]) + bytes(20) + bytes([fields.get("fragment", 0), 0])
    if flags & 3 == 3:
        header += bytes(6)
    if kind & 0x80:
        header += bytes([fields.get("qos", 0), 0]) + bytes(4 if flags & 0x80 else 0)
    return (
        header + b"\xaa\xaa\3\0\0\0" + struct.pack(">H", fields.get("ethertype", 0x0800)) + content
    )


def radiotap(frame: bytes, present: tuple[int, ...] = (0,), fields: bytes = b"") -> bytes:
    """Make a frame behind radiotap: words of its bitmap, and the announced fields."""
    words = struct.pack(f"<{len(present)}I", *present)
    return struct.pack("<BBH", 0, 0, 4 + len(words + fields)) + words + fields + frame


def padded(frame: bytes, header: int) -> bytes:
    """Make a frame whose header is padded to a multiple of four bytes."""
    return frame[:header] + bytes(-header % 4) + frame[header:]


@dataclass(frozen=True)
class Frame:
    """A frame in a capture.

    Attributes:
        time_ns: since the epoch.
        octets: as captured, perhaps cut.
        size: on the wire.
    """

    time_ns: int
    octets: bytes
    size: int

    @staticmethod
    def of(time_ns: int, octets: bytes, snap_bytes: int = 1 << 18) -> "Frame":
        """Make a frame; only a number of its bytes are kept."""
        return Frame(time_ns, octets[:snap_bytes], len(octets))


def classic(
    frames: Iterable[Frame], link_type: int = 1, *, kind: str = "us", order: str = "<", fcs: int = 0
) -> bytes:
    """Make a classic file; `fcs` goes into the upper bits of the link type."""
    tick = 1 if kind == "ns" else 1000
    parts = [struct.pack(order + "IHHiIII", MAGIC[kind], 2, 4, 0, 0, 1 << 18, link_type | fcs)]
    for frame in frames:
        seconds, rest = divmod(frame.time_ns, 1_000_000_000)
        kept = len(frame.octets)
        parts.append(struct.pack(order + "IIII", seconds, rest // tick, kept, frame.size))
        if kind == "modified":
            parts.append(struct.pack(order + "IHBB", 2, 0x0800, 0, 0))
        parts.append(frame.octets)
    return b"".join(parts)


def pcap(
    frames: Iterable[bytes], *, order: str = "<", kind: str = "ns", link_type: int = 1
) -> bytes:
    """Make a classic file: frame k is captured k units after second 1000, less its last byte."""
    unit_ns = 1 if kind == "ns" else 1000
    made = (Frame(10**12 + k * unit_ns, frame, len(frame) + 1) for k, frame in enumerate(frames))
    return classic(made, link_type, kind=kind, order=order)


def block(kind: int, body: bytes, order: str = "<") -> bytes:
    """Make a pcapng block."""
    body += bytes(-len(body) % 4)
    length = struct.pack(order + "I", len(body) + 12)
    return struct.pack(order + "I", kind) + length + body + length


def section(order: str = "<") -> bytes:
    """Make a section header block."""
    return block(0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1), order)


def interface(link_type: int = 1, options: bytes = b"", order: str = "<") -> bytes:
    """Make an interface description block."""
    return block(1, struct.pack(order + "HHI", link_type, 0, 0) + options, order)


def clock(resolution: int, offset_s: int = 0, order: str = "<") -> bytes:
    """Make the options if_tsresol and if_tsoffset, and the option that ends options."""
    return struct.pack(order + "HHB3xHHqHH", 9, 1, resolution, 14, 8, offset_s, 0, 0)


def enhanced(
    frame: bytes,
    ticks: int = 0,
    number: int = 0,
    order: str = "<",
    *,
    size: int | None = None,
    options: bytes = b"",
) -> bytes:
    """Make an enhanced packet block of a frame that may have been longer on the wire."""
    sizes = len(frame), len(frame) if size is None else size
    head = struct.pack(order + "IIIII", number, ticks >> 32, ticks & 0xFFFFFFFF, *sizes)
    return block(6, head + frame + (bytes(-len(frame) % 4) + options if options else b""), order)


def obsolete(
    frame: bytes, ticks: int = 0, number: int = 0, order: str = "<", *, size: int | None = None
) -> bytes:
    """Make a packet block, as in the first drafts."""
    sizes = len(frame), len(frame) if size is None else size
    head = struct.pack(order + "HHIIII", number, 0, ticks >> 32, ticks & 0xFFFFFFFF, *sizes)
    return block(2, head + frame, order)


def simple(frame: bytes, order: str = "<", *, size: int | None = None) -> bytes:
    """Make a simple packet block, which has no time."""
    return block(3, struct.pack(order + "I", len(frame) if size is None else size) + frame, order)


def conversation() -> list[bytes]:
    """Make Ethernet frames: a handshake, data, each option and layer, and ones to be skipped."""
    answer = {"source": 2000, "destination": 1000}
    return [
        ethernet(ipv4(tcp(SYN_OPTIONS, SYN))),
        ethernet(ipv4(tcp(SYN_OPTIONS, SYN | ACK, **answer), source=2, destination=1)),
        ethernet(ipv4()),
        ethernet(ipv4(tcp(SACK + MPTCP))),
        *(ethernet(ipv4(tcp(option))) for option in ACCECN),
        *(ethernet(ipv4(tcp() + record)) for record, _ in TLS),
        ethernet(ipv4(tcp(b"\2\xff"))),
        ethernet(ipv4(tcp(SYN_OPTIONS, SYN, seq=99))),
        ethernet(ipv4(total=0)),
        ethernet(ipv4(fragment=0x2000)),
        ethernet(ipv4(fragment=5)),
        ethernet(ipv4(protocol=17)),
        ethernet(b"", 0x0806),
        ethernet(ipv6(), 0x86DD),
        ethernet(ipv6(b"\6\0" + bytes(6) + SEGMENT, 0), 0x86DD),
        ethernet(ipv6(b"\6\0\0\1" + bytes(4) + SEGMENT, 44), 0x86DD),
        ethernet(ipv6(b"\6\1" + bytes(10) + SEGMENT, 51), 0x86DD),
        ethernet(vlan(vlan(ipv6(), 0x86DD), 0x8100), 0x88A8),
        ethernet(mpls(ipv4(), labels=2), 0x8847),
        ethernet(pppoe(ipv4()), 0x8864),
        ethernet(pppoe(ipv6(), 0x57), 0x8864),
        *(ethernet(b"\0\0", kind) for kind in (0x8100, 0x8847, 0x8864)),
        ethernet(b"\0\1\x81\0" * 9, 0x8100),
        ethernet(ipv4())[:40],
    ]


def udp(content: bytes, port: int, source_port: int = 50_000) -> bytes:
    """Make a datagram to a port."""
    return struct.pack(">HHHH", source_port, port, 8 + len(content), 0) + content


def gre(content: bytes, kind: int, flags: int = 0) -> bytes:
    """Make a GRE header with the optional words that its flags announce, and its payload."""
    words = sum(bool(flags & bit) for bit in (0x8000, 0x2000, 0x1000))
    return struct.pack(">HH", flags, kind) + bytes(4 * words) + content


def tunnels() -> dict[str, list[bytes]]:
    """Make packets of IP with a segment in a tunnel, one for each kind."""
    frame, packet = ethernet(ipv4()), ipv4()
    vxlan, eth = b"\x08" + bytes(7), 0x6558
    gtp = b"\x30\xff" + bytes(6)
    extended = b"\x34\xff" + bytes(9) + b"\x85" + b"\1\0\0\x85" + b"\2" + bytes(7)
    return {
        "ip": [ipv4(packet, 4), ipv4(ipv6(), 41), ipv6(packet, 4)],
        "gre": [
            ipv4(gre(packet, 0x0800), 47),
            ipv4(gre(ipv6(), 0x86DD, 0xB000), 47),
            ipv4(gre(frame, eth, 0x2000), 47),
        ],
        "erspan": [
            ipv4(gre(frame, 0x88BE), 47),
            ipv4(gre(bytes(8) + frame, 0x88BE, 0x1000), 47),
            ipv4(gre(bytes(12) + frame, 0x22EB, 0x1000), 47),
            ipv4(gre(bytes(11) + b"\1" + bytes(8) + frame, 0x22EB, 0x1000), 47),
        ],
        "vxlan": [ipv4(udp(vxlan + frame, port), 17) for port in (4789, 8472)],
        "geneve": [
            ipv4(udp(struct.pack(">BBHI", 2, 0, eth, 0) + bytes(8) + frame, 6081), 17),
            ipv4(udp(struct.pack(">BBHI", 0, 0, 0x0800, 0) + packet, 6081), 17),
        ],
        "gtp": [
            ipv4(udp(gtp + packet, 2152), 17),
            ipv4(udp(b"\x32\xff" + bytes(10) + packet, 2152), 17),
            ipv4(udp(extended + packet, 2152), 17),
        ],
    }


def captures() -> list[bytes]:
    """Make whole files of every format and link type."""
    frames = conversation()
    plain, six = ipv4(), ipv6()
    files = []
    for order in ("<", ">"):
        files += [pcap(frames, order=order, kind=kind) for kind in MAGIC]
        start = section(order) + interface(1, clock(9, -1, order), order)
        files.append(
            start
            + block(4, b"names", order)
            + b"".join(enhanced(frame, order=order) for frame in frames)
            + obsolete(frames[0], 7, 0, order)
            + simple(frames[0], order)
            + enhanced(frames[0], number=9, order=order)
        )
    files.append(files[3] + files[7])
    files.append(pcap(ethernet(ipv4(tcp(source=k))) for k in range(20)))
    files.append(section() + interface() * 20 + enhanced(frames[0], number=15))
    files += [pcap([plain, six], link_type=kind) for kind in (12, 14, 101)]
    files += [pcap([plain], link_type=228), pcap([six], link_type=229), pcap([b"x"], link_type=147)]
    families = [b"\2\0\0\0" + plain, b"\0\0\0\x1e" + six, b"\0\0\0\2" + plain]
    files += [pcap(families, link_type=kind) for kind in (0, 108)]
    files.append(pcap([bytes(14) + b"\x08\0" + plain], link_type=113))
    ppp = [b"\x21" + plain, b"\xff\3\0\x57" + six, b"\x0f\0\x08\0" + plain]
    files += [pcap(ppp, link_type=kind) for kind in (9, 50, 104)]
    files.append(pcap([b"\x86\xdd" + bytes(18) + six], link_type=276))
    frames = [wlan(plain, 0x88, 0x83), wlan(plain), wlan(b"", flags=0x40), wlan(b"", 0x88, qos=128)]
    files.append(pcap(frames, link_type=105))
    frames = [radiotap(frame, (0x80000003, 0), bytes(12) + b"\x20") for frame in frames]
    files.append(pcap(frames, link_type=127))
    files.append(pcap([packet for kind in tunnels().values() for packet in kind], link_type=101))
    return files
