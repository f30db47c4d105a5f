"""Files made to exhaust or confuse a reader of captures, with the expected results."""

import gzip
import lzma
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from corpus_conversations import whole
from corpus_files import Frame, Interface, Pcapng, pcap, pcapng
from scapy.layers.inet import IP, TCP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Dot1Q, Ether

HUGE = 0xFFFFFFFF
_MACS: dict[str, Any] = {"src": "02:00:00:00:00:01", "dst": "02:00:00:00:00:02"}
BOMB_BYTES = 1 << 31


@dataclass(frozen=True)
class Hostile:
    """A file.

    Attributes:
        name: what it is.
        content: its bytes.
        packets: number of packets that can be read; None if it must be refused.
        said: part of the refusal, or of a warning; "" if none is needed.
    """

    name: str
    content: Callable[[], bytes]
    packets: int | None
    said: str


def _good(count: int = 10) -> list[Frame]:
    ethernet = bytes(Ether(**_MACS, type=0x0800))
    return [Frame.of(d.time_ns, ethernet + d.octets) for d in whole(1)[:count]]


def _classic(tail: bytes) -> bytes:
    return pcap(_good(), 1) + tail


def _blocks(tail: bytes) -> bytes:
    return pcapng(_good(), Interface(1, 9)) + tail


def _frames(*octets: bytes) -> bytes:
    return pcap([*_good(), *(Frame.of(n, each) for n, each in enumerate(octets))], 1)


def _tags(count: int) -> bytes:
    inner = bytes(IP(src="10.0.0.1", dst="10.0.0.2") / TCP())
    return (
        bytes(Ether(**_MACS, type=0x8100))
        + bytes(Dot1Q(type=0x8100)) * count
        + bytes(Dot1Q())
        + inner
    )


def _extensions(count: int) -> bytes:
    chain = (b"\x3c\x00" + bytes(6)) * count + b"\x06\x00" + bytes(6)
    head = Ether(**_MACS) / IPv6(src="::1", dst="::2", nh=60, plen=len(chain) + 20)
    return bytes(head) + chain + bytes(TCP())


def _interfaces(count: int) -> bytes:
    file = Pcapng().section()
    one = Pcapng().section().interface(Interface(1)).octets[len(file.octets) :]
    return file.octets + one * count + _blocks(b"")


def _sections(count: int) -> bytes:
    return pcapng([], Interface(1)) * count + _blocks(b"")


def _many_connections(count: int) -> bytes:
    """Make packets, each a SYN of another connection."""
    base = bytes(Ether(**_MACS) / IP(src="10.0.0.1", dst="10.0.0.2") / TCP(flags="S"))
    parts = [pcap([], 1)]
    for n in range(count):
        source = struct.pack(">I", 0x0A000000 + n)
        octets = base[:26] + source + base[30:]
        parts.append(struct.pack("<IIII", 1, 0, len(octets), len(octets)) + octets)
    return b"".join(parts)


def _bomb(pack: Callable[[bytes], bytes], piece: bytes, head: bytes) -> bytes:
    """Repeat a piece up to BOMB_BYTES after a valid head."""
    member = piece * ((1 << 24) // len(piece))
    return pack(head) + pack(member) * (BOMB_BYTES // len(member))


def _zstd_window() -> bytes:
    """Make a frame that demands a window of 2 GiB."""
    return b"\x28\xb5\x2f\xfd\x00" + bytes([(31 - 10) << 3]) + bytes(50)


def files() -> Iterator[Hostile]:
    """Return all hostile files."""
    record = struct.pack("<IIII", 1, 0, HUGE, HUGE)
    yield Hostile("empty", lambda: b"", None, "empty")
    yield Hostile("a byte", lambda: b"\xd4", None, "too short")
    yield Hostile("header cut", lambda: pcap([], 1)[:23], None, "too short")
    yield Hostile(
        "text", lambda: b"Not a capture at all, but a text.\n" * 9, None, "neither pcap nor pcapng"
    )
    yield Hostile("zeros", lambda: bytes(1 << 16), None, "neither pcap nor pcapng")
    yield Hostile("4 GB record first", lambda: pcap([], 1) + record, None, "4294967295")
    yield Hostile("4 GB record", lambda: _classic(record), 10, "4294967295")
    yield Hostile(
        "just too long", lambda: _classic(struct.pack("<IIII", 1, 0, 64 << 20, 9)), 10, ""
    )
    yield Hostile("cut off", lambda: _classic(record[:7]), 10, "inside record 11")
    for length in (0, 4, 8, 13, HUGE, HUGE & ~3):
        block = struct.pack("<III", 6, length, length)
        yield Hostile(f"block of {length}", partial(_blocks, block), 10, "the rest was not read")
    lies = struct.pack("<II5II", 6, 32, 0, 0, 0, HUGE, HUGE, 32)
    yield Hostile("block smaller than its packet", lambda: _blocks(lies), 10, "contradict")
    stray = struct.pack("<II5II", 6, 32, 77, 0, 0, 0, 0, 32)
    yield Hostile("block of no interface", lambda: _blocks(stray), 10, "no block before them")
    yield Hostile("thousand tags", lambda: _frames(_tags(1000)), 10, "contradict")
    yield Hostile(
        "thousand extension headers", lambda: _frames(_extensions(1000)), 10, "contradict"
    )
    labels = bytes(Ether(**_MACS, type=0x8847)) + bytes(4000)
    yield Hostile("labels without bottom", lambda: _frames(labels), 10, "contradict")
    yield Hostile("many interfaces", lambda: _interfaces(70_000), 10, "")
    yield Hostile("many sections", lambda: _sections(50_000), 10, "")
    yield Hostile("many connections", lambda: _many_connections(150_000), 150_000, "")
    yield Hostile("gzip cut", lambda: gzip.compress(_classic(b""))[:-20], 9, "gzip: ends too early")
    yield Hostile(
        "gzip bomb of empty records",
        lambda: _bomb(gzip.compress, struct.pack("<IIII", 1, 0, 0, 0), _classic(b"")),
        None,
        "no capture does so",
    )
    yield Hostile(
        "gzip bomb inside a record",
        lambda: _bomb(gzip.compress, bytes(64), _classic(record)),
        10,
        "4294967295",
    )
    yield Hostile(
        "xz bomb",
        lambda: _bomb(lzma.compress, bytes(16), _classic(b"")),
        10,
        "claims 0 bytes; the rest was not read",
    )
    yield Hostile("zstd with a window of 2 GiB", _zstd_window, None, "zstd")
