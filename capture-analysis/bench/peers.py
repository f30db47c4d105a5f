"""Other programs to compare with, built here or found on PATH.

A missing program is reported and left out. The programs in peers/ are ours: they read the same
fields as our columns and print how many packets they read and the nanoseconds that took; they do
not number connections, which favours them. Other programs are measured from outside, start-up
included.
"""

import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from processes import run

SOURCES = Path(__file__).parent / "peers"
# Of the capture tshark reads only so many packets: the whole would take a minute.
TSHARK_PACKETS = 50_000


@dataclass(frozen=True)
class Peer:
    """A program to compare with.

    Attributes:
        name: its name in the table.
        packets_per_second: reads a capture and returns the speed.
    """

    name: str
    packets_per_second: Callable[[Path], float]


def build(folder: Path, packets: int) -> list[Peer]:
    """Build and find programs; the first is always the walk in C.

    Args:
        folder: where to build.
        packets: number of packets in the capture.
    """
    walk = folder / "walk"
    subprocess.run(["gcc", "-O2", "-o", walk, SOURCES / "walk.c"], check=True)
    peers = [Peer("walk from record to record, in C", lambda path: _own(walk, path))]
    for name, builder in (
        ("pcap-parser with etherparse (Rust)", _rust),
        ("gopacket (Go)", _gopacket),
    ):
        program = builder(folder)
        if program is not None:
            peers.append(_own_peer(name, program))
    for name, words, read in (
        ("tcptrace", ["tcptrace", "-n"], packets),
        ("tcpdump -n", ["tcpdump", "-n", "-r"], packets),
        (
            f"tshark -T fields, of {TSHARK_PACKETS} packets",
            ["tshark", "-n", *_fields(), "-c", str(TSHARK_PACKETS), "-r"],
            min(TSHARK_PACKETS, packets),
        ),
    ):
        if shutil.which(words[0]) is None:
            _missing(name, f"{words[0]} is not installed")
        else:
            peers.append(_foreign(name, words, read))
    return peers


def _own_peer(name: str, program: Path) -> Peer:
    return Peer(name, lambda path: _own(program, path))


def _foreign(name: str, words: list[str], read: int) -> Peer:
    return Peer(name, lambda path: read / run([*words, path], keep_output=False).seconds)


def _own(program: Path, path: Path) -> float:
    packets, nanoseconds = map(int, run([program, path]).output.split())
    return packets / nanoseconds * 1e9


def _fields() -> list[str]:
    """List tshark's options for the fields of our columns."""
    fields = (
        "frame.time_epoch",
        "frame.len",
        "tcp.stream",
        "tcp.seq_raw",
        "tcp.ack_raw",
        "tcp.len",
        "tcp.flags",
        "tcp.window_size_value",
        "ip.id",
        "tcp.options.timestamp.tsval",
        "tcp.options.timestamp.tsecr",
        "tcp.options.sack_le",
        "tcp.options.sack_re",
    )
    return ["-T", "fields", *(word for field in fields for word in ("-e", field))]


def _rust(folder: Path) -> Path | None:
    target = folder / "rust"
    words = ["cargo", "build", "--quiet", "--release", "--target-dir", str(target)]
    built = _built("Rust peer", [*words, "--manifest-path", "Cargo.toml"], folder / "rust-sources")
    return target / "release" / "peer" if built else None


def _gopacket(folder: Path) -> Path | None:
    program = folder / "gopacket-peer"
    words = ["go", "build", "-mod=mod", "-o", str(program), "."]
    return program if _built("gopacket peer", words, folder / "gopacket-sources") else None


def _built(name: str, words: list[str], folder: Path) -> bool:
    """Build a copy of the sources, to keep lock files out of the tree."""
    if shutil.which(words[0]) is None:
        _missing(name, f"{words[0]} is not installed")
        return False
    shutil.copytree(SOURCES / folder.name.removesuffix("-sources"), folder)
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        _missing(name, done.stderr.strip().rpartition("\n")[2])
    return done.returncode == 0


def _missing(name: str, why: str) -> None:
    print(f"LEFT OUT: {name}: {why}", flush=True)
