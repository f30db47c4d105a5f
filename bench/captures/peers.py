"""Other programs to compare with: walk.c, and programs found on PATH.

A missing program is reported and left out. walk.c prints how many packets it read and how many
nanoseconds that took; it does not number connections, which favours it. Other programs are measured
from outside, start-up included.
"""

import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from processes import run

# tshark reads only this many packets of the capture: the whole would take a minute.
TSHARK_PACKETS = 50_000


@dataclass(frozen=True)
class Peer:
    """A program to compare with.

    Attributes:
        name: its name in the table.
        packets_per_second: a function that reads a capture and returns the speed.
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
    subprocess.run(["gcc", "-O2", "-o", walk, Path(__file__).with_name("walk.c")], check=True)
    peers = [Peer("walk from record to record, in C", lambda path: _own(walk, path))]
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
            print(f"LEFT OUT: {name}: {words[0]} is not installed", flush=True)
        else:
            peers.append(_foreign(name, words, read))
    return peers


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
