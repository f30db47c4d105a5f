"""More than 200 captures of every kind, built again on demand, and always alike.

`build` writes them into a folder. Each is a conversation (corpus_conversations.py, and its variants
by corpus_tcp.py) behind headers (corpus_headers.py) in a file format (corpus_files.py); or made of
such a file by a program, or traffic of this machine, the only one that differs each time
(corpus_tools.py).
"""

import gzip
import lzma
import random
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import corpus_headers
import corpus_tcp
from corpus_conversations import Datagram, several, whole
from corpus_files import Interface, Pcapng, pcapng
from corpus_headers import LINKS, Link
from hand_built import Frame, classic

FORMATS: dict[str, Callable[[Sequence[Frame], int], bytes]] = {
    "us-little": classic,
    "us-big": lambda frames, link: classic(frames, link, order=">"),
    "ns-little": lambda frames, link: classic(frames, link, kind="ns"),
    "ns-big": lambda frames, link: classic(frames, link, kind="ns", order=">"),
    "modified-little": lambda frames, link: classic(frames, link, kind="modified"),
    "modified-big": lambda frames, link: classic(frames, link, kind="modified", order=">"),
    "ng-little": lambda frames, link: pcapng(frames, Interface(link, 9)),
    "ng-big": lambda frames, link: pcapng(frames, Interface(link, 9), ">"),
}
RESOLUTIONS = {
    **{f"10-{n}": n for n in (0, 1, 3, 5, 6, 7, 9, 10)},
    **{f"2-{n}": n | 128 for n in (0, 4, 10, 16, 20, 24, 30, 32)},
}
SNAPS = (20, 34, 36, 40, 47, 50, 53, 54, 55, 57, 58, 60, 64, 66, 68, 70, 77, 96, 128)


@dataclass(frozen=True)
class Specimen:
    """A capture of the corpus.

    Attributes:
        name: its name, as idea/variant.
        path: the file.
        asked: the file for tshark instead, if it cannot read this one.
        why: the reason.
    """

    name: str
    path: Path
    asked: Path | None = None
    why: str = ""


def frames(
    talk: Sequence[Datagram], link: Link, snap_bytes: int = 1 << 18, trailer: int = 0
) -> list[Frame]:
    """Return a conversation's frames on a link; Ethernet pads to 60 octets with a trailer."""
    found = []
    for datagram in talk:
        octets = link.header(datagram.version, len(datagram.octets)) + datagram.octets
        if trailer:
            octets = octets.ljust(60, b"\0") + bytes(range(trailer))
        found.append(Frame.of(datagram.time_ns, octets, snap_bytes))
    return found


def build(folder: Path) -> list[Specimen]:
    """Write the captures that need only Python."""
    (folder / "asked").mkdir()
    found = []
    for name, content in _contents():
        path = folder / f"{name.replace('/', '_')}.pcap"
        path.write_bytes(content)
        found.append(Specimen(name, path))
    for name, content, asked, why in _unreadable():
        path, other = (
            folder / f"{name.replace('/', '_')}.pcap",
            folder / "asked" / f"{name.replace('/', '_')}.pcap",
        )
        path.write_bytes(content)
        other.write_bytes(asked)
        found.append(Specimen(name, path, other, why))
    return found + list(_compressed(found))


def _unreadable() -> Iterator[tuple[str, bytes, bytes, str]]:
    """Make files that tshark misreads, each with an equal file that tshark understands."""
    for order in ("little", "big"):
        talk = whole(90, version=6)
        content, asked = (
            classic(frames(talk, LINKS[f"null-{family}"]), 0)
            for family in (f"linux-6-{order}", "30-big")
        )
        yield f"link/null-linux-{order}-6", content, asked, "tshark 4.0 knows no AF_INET6 of 10"
    talk = whole(91, version=6)
    content, asked = (
        classic(frames(each, LINKS["ethernet"]))
        for each in ([corpus_headers.zero_length(datagram) for datagram in talk], talk)
    )
    yield "ip/payload-length-0", content, asked, "tshark 4.0 takes an IPv6 length of 0 literally"
    made = frames(whole(92), LINKS["ethernet"])
    content, asked = (pcapng(made, Interface(1, digits, 946_684_800)) for digits in (12, 9))
    yield "resolution/10-12", content, asked, "tshark 4.0 calculates 10^-12 s in too few bits"
    content, asked = (_with_blocks(made, OTHER_BLOCKS[:kinds]) for kinds in (5, 4))
    yield "block/others", content, asked, "tshark 4.0 shows custom blocks as frames"


def _with_blocks(made: Sequence[Frame], others: Sequence[tuple[int, bytes]]) -> bytes:
    """Make packets, each with a comment and another block behind it."""
    file = Pcapng().section().interface(Interface(1, 9))
    for n, frame in enumerate(made):
        file.packet(frame, comment=b"c" * n)
        file.block(*others[n % len(others)])
    return file.octets


def _contents() -> Iterator[tuple[str, bytes]]:
    """Return names and contents."""
    yield from _links()
    yield from _wireless()
    yield from _one_way_tags()
    yield from _formats()
    yield from _sections()
    yield from _blocks()
    turn = list(FORMATS.items())
    ethernet = LINKS["ethernet"]
    for idea, variants in (("ip", corpus_headers.variants()), ("tcp", corpus_tcp.variants())):
        for n, (name, talk) in enumerate(variants.items()):
            yield f"{idea}/{name}", turn[n % len(turn)][1](frames(talk, ethernet), 1)
    for n, snap in enumerate(SNAPS):
        talk = several(70, 3, versions=(4, 6)) + corpus_tcp.variants()["options"]
        kept = frames(talk, ethernet, snap)
        yield f"snap/{snap}", turn[n % len(turn)][1](kept, 1)
    yield from _random(20)


def _links() -> Iterator[tuple[str, bytes]]:
    """Make each link type with each version of IP that it carries, in alternating formats."""
    turn = list(FORMATS.values())
    for n, (name, link) in enumerate(LINKS.items()):
        for version in link.versions:
            talk = whole(100 + n, version=version)
            yield f"link/{name}-{version}", turn[n % 8](frames(talk, link), link.link_type)
    padded = frames(whole(99), LINKS["ethernet"], trailer=4)
    yield "link/padding-and-fcs", classic(padded, 1, fcs=0x24000000)
    mixed = frames(several(98, 4, versions=(4, 6)), LINKS["raw"])
    yield "link/raw-both", classic(mixed, 101)
    others = [
        Frame.of(95, b"\xff" * 12 + b"\x08\x06" + bytes(46)),  # ARP
        Frame.of(96, b"\xff" * 12 + b"\x00\x2e" + bytes(46)),  # LLC
        Frame.of(97, b"\xff" * 12 + b"\x88\xcc" + bytes(46)),  # LLDP
        Frame.of(98, b"\xff" * 12 + b"\x81\x00\x00\x05\x08\x06" + bytes(46)),
    ]
    yield "link/not-ip", classic([*others, *frames(whole(97), LINKS["ethernet"])])


def _wireless() -> Iterator[tuple[str, bytes]]:
    """Make 802.11: besides data, frames without data, encrypted ones, and ones sent again."""
    data = frames(whole(94), LINKS["wlan"])
    addresses = bytes(range(18)) + bytes(2)
    others = [
        Frame.of(95, b"\x80\0\0\0" + addresses + bytes(20)),  # beacon
        Frame.of(96, b"\xd4\0\0\0" + addresses[:6]),  # acknowledgement
        Frame.of(97, b"\x48\1\0\0" + addresses),  # no data
        Frame.of(98, b"\x08\x41\0\0" + addresses + b"\1\2\3\x20\4\5\6\7" + bytes(30)),  # CCMP
        Frame.of(99, b"\x08\1\0\0" + addresses + b"\x42\x42\3" + bytes(30)),  # LLC
    ]
    yield "wlan/others", classic([*others, *data], 105)


def _one_way_tags() -> Iterator[tuple[str, bytes]]:
    """Make connections with a VLAN in one direction only, captured whole or from their middle."""
    for version, start in ((4, 0), (6, 0), (4, 1), (6, 7)):
        talk = whole(95 + start, version=version)
        tagged, plain = (frames(talk, LINKS[name]) for name in ("vlan", "ethernet"))
        source = talk[0].octets[12:16] if version == 4 else talk[0].octets[8:24]
        made = [
            pair[source not in datagram.octets[: 16 if version == 4 else 24]]
            for datagram, *pair in zip(talk, tagged, plain, strict=True)
        ]
        yield f"vlan/one-way-{version}-{start}", classic(made[start:])


def _formats() -> Iterator[tuple[str, bytes]]:
    """Make every file format, and every resolution of pcapng."""
    made = frames(whole(1), LINKS["ethernet"])
    for name, form in FORMATS.items():
        yield f"format/{name}", form(made, 1)
        yield f"format/{name}-flows", form(frames(several(2, 5), LINKS["ethernet"]), 1)
    for n, (name, resolution) in enumerate(RESOLUTIONS.items()):
        order = "<>"[n % 2]
        yield f"resolution/{name}", pcapng(made, Interface(1, resolution), order)
    yield "resolution/none", pcapng(made, Interface(1))
    for n, offset_s in enumerate((1, -1, 946_684_800, -(10**9))):
        interface = Interface(1, (6, 9, 3, 138)[n], offset_s)
        yield f"resolution/offset-{n}", pcapng(made, interface, "<>"[n % 2])


def _sections() -> Iterator[tuple[str, bytes]]:
    """Make several sections of pcapng in a file, in both byte orders."""
    ethernet = frames(whole(3), LINKS["ethernet"])
    raw = frames(whole(4, version=6), LINKS["raw"])
    file = Pcapng()
    for order in "<><":
        file.section(order).interface(Interface(1, 9)).packets(ethernet[:20])
    yield "section/orders", file.octets
    file = Pcapng().section().interface(Interface(1, 9))
    file.section(">").interface(Interface(101)).packets(raw)
    yield "section/empty-first", file.octets


def _blocks() -> Iterator[tuple[str, bytes]]:
    """Make several interfaces of pcapng in a section, and the rarer blocks of packets."""
    made = (
        frames(whole(3), LINKS["ethernet"]),
        frames(whole(4, version=6), LINKS["raw"]),
        frames(whole(5, version=6), LINKS["sll2"]),
    )
    file = Pcapng().section(">")
    for n, interface in enumerate((Interface(1, 9), Interface(101, 6, 5), Interface(276, 138))):
        file.interface(interface).packets(made[n][:20], n)
    for n in range(60):
        file.packet(made[n % 3][20 + n // 3], n % 3)
    yield "block/interfaces", file.octets
    for order in ("little", "big"):
        file = Pcapng().section("<" if order == "little" else ">")
        file.interface(Interface(1)).interface(Interface(101, 9))
        for one, other in zip(*made[:2], strict=False):
            file.obsolete_packet(one).obsolete_packet(other, 1)
        yield f"block/obsolete-{order}", file.octets
    file = Pcapng().section().interface(Interface(1, 9))
    for one, other in zip(made[0][::2], made[0][1::2], strict=False):
        file.packet(one).simple_packet(other)
    yield "block/simple", file.octets


# Name resolution, interface statistics, decryption secrets, unknown, custom.
OTHER_BLOCKS = (
    (4, b"\x01\x00\x09\x00\x0a\x00\x01\x02host\x00" + bytes(7)),
    (5, bytes(12)),
    (10, b"KSLT\x04\x00\x00\x00key\n"),
    (0x80000001, bytes(3)),
    (0x0BAD, b"\x00\x00\x7e\xd9" + bytes(21)),
)


def _random(count: int) -> Iterator[tuple[str, bytes]]:
    """Make any conversation behind any link in any format, cut anywhere."""
    chosen = random.Random(2026)
    talks = {**corpus_headers.variants(), **corpus_tcp.variants()}
    del talks["ah"]  # tshark counts this as TCP and we do not, so streams would differ
    for n in range(count):
        first, second = (talks[name] for name in chosen.sample(sorted(talks), 2))
        talk = sorted([*first, *second], key=lambda d: d.time_ns) if n % 2 else [*first, *second]
        versions = {d.version for d in talk}
        fitting = [name for name, link in LINKS.items() if versions <= set(link.versions)]
        link = LINKS[chosen.choice(fitting)]
        snap = chosen.choice([96, 128, 200, 1 << 18])
        form = chosen.choice(sorted(FORMATS))
        yield f"random/{n}-{form}", FORMATS[form](frames(talk, link, snap), link.link_type)


def _compressed(plain: Sequence[Specimen]) -> Iterator[Specimen]:
    """Compress some of the captures, one of them in several members."""
    chosen = [s for s in plain if s.name.startswith("format/") and s.name.endswith("flows")]
    for n, specimen in enumerate(chosen):
        content = specimen.path.read_bytes()
        path = Path(f"{specimen.path}.{('gz', 'xz', 'zst')[n % 3]}")
        if path.suffix == ".gz":
            path.write_bytes(gzip.compress(content[:999]) + gzip.compress(content[999:]))
        elif path.suffix == ".xz":
            path.write_bytes(lzma.compress(content))
        else:
            zstd = shutil.which("zstd")
            if zstd is None:
                raise RuntimeError("zstd is not installed: apt install zstd")
            subprocess.run([zstd, "-q", specimen.path, "-o", path], check=True)
        why = "tshark 4.0 reads no xz" if path.suffix == ".xz" else ""
        yield Specimen(f"{specimen.name}{path.suffix}", path, specimen.path if why else None, why)
