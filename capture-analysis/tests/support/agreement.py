"""The agreement of our words for packets with Wireshark's and tcptrace's, over some captures.

    python agreement.py CAPTURE...

For each word, print the number of packets that both name so, only we, and only tshark; and the
total of tcptrace's retransmissions. It is for captures near the data's senders.
"""

import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
from capture_analysis.columns import BoolArray
from capture_analysis.reading.byte_source import ByteSource
from capture_analysis.reading.capture import read_capture
from capture_analysis.tracking import Kind, Repair, Tracked, Tracker

# Our name for a packet, and the field of tshark whose presence means the same.
WORDS: dict[str, tuple[Callable[[Tracked], BoolArray], str]] = {
    "sent again": (
        lambda t: (t.kind == Kind.RETRANSMISSION) | (t.kind == Kind.LATE_DATA),
        "(tcp.analysis.retransmission || tcp.analysis.out_of_order) && tcp.len > 0",
    ),
    "fast": (lambda t: t.repair == Repair.FAST, "tcp.analysis.fast_retransmission"),
    "spurious": (lambda t: t.repair == Repair.SPURIOUS, "tcp.analysis.spurious_retransmission"),
    "duplicate ACK": (lambda t: t.kind == Kind.DUPLICATE_ACK, "tcp.analysis.duplicate_ack"),
    "hole proved": (lambda t: t.unseen_bytes > 0, "tcp.analysis.ack_lost_segment"),
}


def compare(path: Path) -> tuple[Counter[tuple[str, str]], int, int]:
    """Count packets by word and program; and retransmissions, ours and tcptrace's.

    Args:
        path: a plain pcap.
    """
    packets, flows = read_capture(path)
    tracked = Tracker().track(packets, flows)
    counts: Counter[tuple[str, str]] = Counter()
    for word, (ours, field) in WORDS.items():
        mine = set(packets.frame[ours(tracked)].tolist())
        theirs = _named(path, field)
        counts[word, "both"] += len(mine & theirs)
        counts[word, "ours alone"] += len(mine - theirs)
        counts[word, "tshark alone"] += len(theirs - mine)
    again = int(np.isin(tracked.kind, (Kind.RETRANSMISSION, Kind.LATE_DATA)).sum())
    return counts, again, _tcptrace(path)


def _named(path: Path, display_filter: str) -> set[int]:
    command = ["tshark", "-n", "-r", str(path), "-Y", display_filter]
    fields = ["-T", "fields", "-e", "frame.number"]
    done = subprocess.run([*command, *fields], capture_output=True, text=True, check=True)
    return set(map(int, done.stdout.split()))


def _tcptrace(path: Path) -> int:
    """Sum tcptrace's counts of retransmitted and out-of-order packets over all connections."""
    done = subprocess.run(["tcptrace", "-nl", path], capture_output=True, text=True, check=True)
    found = re.findall(r"(?:rexmt data pkts|outoforder pkts):\s+(\d+)", done.stdout)
    return sum(map(int, found))


def main() -> None:
    """Compare the captures of the command line, and print the sums."""
    total: Counter[tuple[str, str]] = Counter()
    again = theirs = 0
    with tempfile.TemporaryDirectory() as folder:
        for number, name in enumerate(sys.argv[1:]):
            plain = Path(folder) / f"{number}.pcap"
            with ByteSource(Path(name)) as source, plain.open("wb") as file:
                buffer = np.empty(1 << 20, dtype=np.uint8)
                while count := source.fill(buffer):
                    file.write(buffer[:count].data)
            counts, mine, peers = compare(plain)
            total += counts
            again, theirs = again + mine, theirs + peers
    who = ("both", "ours alone", "tshark alone")
    rows = [("", *who), *((word, *(str(total[word, each]) for each in who)) for word in WORDS)]
    sys.stdout.writelines(f"{row[0]:<16}{row[1]:>14}{row[2]:>14}{row[3]:>14}\n" for row in rows)
    sys.stdout.write(f"sent again, by tcptrace: {theirs}, ours: {again}\n")


if __name__ == "__main__":
    main()
