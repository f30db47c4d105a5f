"""Files made to exhaust or confuse a reader are refused, or read in part, in bounded memory."""

import gzip
import json
import lzma
import os
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import bounded_cli
import pytest
from corpus_conversations import whole
from corpus_files import Interface, Pcapng, pcapng
from hand_built import SYN, Frame, classic, ethernet, ipv4, ipv6, tcp, vlan

HUGE = 0xFFFFFFFF
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
    return [Frame.of(d.time_ns, ethernet(d.octets)) for d in whole(1)[:count]]


def _classic(tail: bytes) -> bytes:
    return classic(_good()) + tail


def _blocks(tail: bytes) -> bytes:
    return pcapng(_good(), Interface(1, 9)) + tail


def _frame(octets: bytes) -> bytes:
    return classic([*_good(), Frame.of(0, octets)])


def _tags(count: int) -> bytes:
    return ethernet(b"\0\1\x81\0" * count + vlan(ipv4(tcp())), 0x8100)


def _extensions(count: int) -> bytes:
    chain = (b"\x3c\x00" + bytes(6)) * count + b"\x06\x00" + bytes(6)
    return ethernet(ipv6(chain + tcp(), 60), 0x86DD)


def _interfaces(count: int) -> bytes:
    file = Pcapng().section()
    one = Pcapng().section().interface(Interface(1)).octets[len(file.octets) :]
    return file.octets + one * count + _blocks(b"")


def _sections(count: int) -> bytes:
    return pcapng([], Interface(1)) * count + _blocks(b"")


def _many_connections(count: int) -> bytes:
    """Make packets, each a SYN of another connection."""
    syns = (ethernet(ipv4(tcp(flags=SYN), source=n)) for n in range(count))
    return classic(Frame.of(10**9, syn) for syn in syns)


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
    yield Hostile("header cut", lambda: classic([])[:23], None, "too short")
    yield Hostile(
        "text", lambda: b"Not a capture at all, but a text.\n" * 9, None, "neither pcap nor pcapng"
    )
    yield Hostile("zeros", lambda: bytes(1 << 16), None, "neither pcap nor pcapng")
    yield Hostile("4 GB record first", lambda: classic([]) + record, None, "4294967295")
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
    yield Hostile("thousand tags", lambda: _frame(_tags(1000)), 10, "contradict")
    yield Hostile("thousand extension headers", lambda: _frame(_extensions(1000)), 10, "contradict")
    labels = ethernet(bytes(4000), 0x8847)
    yield Hostile("labels without bottom", lambda: _frame(labels), 10, "contradict")
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


pytestmark = pytest.mark.slow

FILES = list(files())

Ask = Callable[..., dict[str, Any]]


@pytest.fixture(scope="module")
def ask() -> Iterator[Ask]:
    """Return a function that runs the command with at most 1 GiB of address space."""
    with subprocess.Popen(
        [sys.executable, bounded_cli.__file__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        requests, answers = process.stdin, process.stdout

        def one(*arguments: str | Path) -> dict[str, Any]:
            requests.write(json.dumps([str(argument) for argument in arguments]) + "\n")
            requests.flush()
            line = answers.readline()
            assert line, "the command took the whole process with it"
            answer: dict[str, Any] = json.loads(line)
            return answer

        yield one
        requests.close()


@pytest.mark.parametrize("hostile", FILES, ids=lambda hostile: hostile.name)
def test_hostile_file(ask: Ask, hostile: Hostile, tmp_path: Path) -> None:
    """A hostile file is refused with a sentence and status 2, or read in part with a warning."""
    path = tmp_path / "hostile.pcap"
    path.write_bytes(hostile.content())
    answer = ask("metrics", path, "--workers", "1")
    if hostile.packets is None:
        assert answer["status"] == 2
        assert answer["output"] == ""
        assert answer["errors"].startswith(f"capture-analysis: {path}: ")
        assert hostile.said in answer["errors"]
    else:
        assert answer["status"] == 0
        document = json.loads(answer["output"])
        assert document["capture"]["packets"] == hostile.packets
        assert hostile.said in " ".join(document["warnings"])


@pytest.mark.parametrize("hostile", FILES, ids=lambda hostile: hostile.name)
def test_hostile_file_annotated(ask: Ask, hostile: Hostile, tmp_path: Path) -> None:
    """`annotate` refuses a hostile file and leaves no copy, or copies it as far as possible."""
    path, target = tmp_path / "hostile.pcap", tmp_path / "copy.pcapng"
    path.write_bytes(hostile.content())
    answer = ask("annotate", path, "-o", target)
    if hostile.packets is None:
        assert answer["status"] == 2
        assert answer["errors"].startswith(f"capture-analysis: {path}: ")
        assert list(tmp_path.iterdir()) == [path]
    else:
        assert answer["status"] == 0
        again = ask("metrics", target, "--workers", "1")
        assert json.loads(again["output"])["capture"]["packets"] == hostile.packets


def test_hostile_file_as_table(ask: Ask, tmp_path: Path) -> None:
    """`flows` lists the connections before the damage, and reports it on stderr."""
    path = tmp_path / "hostile.pcap"
    path.write_bytes(next(each for each in FILES if each.name == "4 GB record").content())
    answer = ask("flows", path)
    assert answer["status"] == 0
    assert "10.0.1.2:40001 > 10.0.2.2:20001" in answer["output"]
    assert "claims 4294967295 bytes; the rest was not read" in answer["errors"]


def test_no_file(ask: Ask, tmp_path: Path) -> None:
    """A missing file, a folder and a device are refused by name, with status 2."""
    for path in (tmp_path / "nothing.pcap", tmp_path, Path("/dev/null")):
        answer = ask("flows", path)
        assert answer["status"] == 2
        assert answer["errors"].startswith(f"capture-analysis: {path}")
