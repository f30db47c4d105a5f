"""Wireshark's dissection of a capture's frames, one row of fields per frame.

tshark takes a quarter of a second to start. Its answers rarely change and are kept in the user's
cache, under the hash of its version, the question and the capture.
"""

import hashlib
import os
import subprocess
import time
import zlib
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "twoway/tshark"
KEPT_S = 30 * 24 * 3600

FIELDS = {
    "number": "frame.number",
    "time": "frame.time_epoch",
    "frame_bytes": "frame.len",
    "kept_bytes": "frame.cap_len",
    "interface": "frame.interface_id",
    "service_vlan": "ieee8021ad.id",
    "vlan": "vlan.id",
    "ip_source": "ip.src",
    "ip_destination": "ip.dst",
    "ipv6_source": "ipv6.src",
    "ipv6_destination": "ipv6.dst",
    "ip_id": "ip.id",
    "ip_protocol": "ip.proto",
    "ip_fragment": "ip.frag_offset",
    "ip_more": "ip.flags.mf",
    "ipv6_next": "ipv6.nxt",
    "ipv6_fragment": "ipv6.fraghdr.offset",
    "ipv6_more": "ipv6.fraghdr.more",
    "ipv6_fragmented": "ipv6.fraghdr.nxt",
    "source_port": "tcp.srcport",
    "destination_port": "tcp.dstport",
    "stream": "tcp.stream",
    "seq_raw": "tcp.seq_raw",
    "ack_raw": "tcp.ack_raw",
    "seq": "tcp.seq",
    "ack": "tcp.ack",
    "payload_bytes": "tcp.len",
    "flags": "tcp.flags",
    "window": "tcp.window_size_value",
    "urgent": "tcp.urgent_pointer",
    "ts_value": "tcp.options.timestamp.tsval",
    "ts_echo": "tcp.options.timestamp.tsecr",
    "sack_left": "tcp.options.sack_le",
    "sack_right": "tcp.options.sack_re",
    "mptcp": "tcp.options.mptcp.subtype",
    "accecn": "tcp.options.acc_ecn",
    "ack_rtt": "tcp.analysis.ack_rtt",
    "protocols": "frame.protocols",
}
# Options: dissect packets as the file has them, without reassembly or guesses.
PREFERENCES = {
    "ip.defragment": "FALSE",
    "ip.check_checksum": "FALSE",
    "ip.tso_support": "TRUE",
    "ipv6.defragment": "FALSE",
    "tcp.check_checksum": "FALSE",
    "tcp.desegment_tcp_streams": "FALSE",
    "tcp.analyze_sequence_numbers": "TRUE",
    "tcp.relative_sequence_numbers": "TRUE",
    "tcp.track_bytes_in_flight": "FALSE",
    "tcp.try_heuristic_first": "FALSE",
}
# Protocols that would show fields of inner packets, or dissect the payload.
WITHOUT = ("icmp", "icmpv6", "ipip", "gre", "http", "tls")


@dataclass(frozen=True)
class Row:
    """A frame in tshark's fields, by the names of FIELDS, as text; "" for missing ones.

    A field that occurs several times has its values separated by commas.
    """

    fields: Mapping[str, str]

    def __getitem__(self, name: str) -> str:
        return self.fields[name]

    def number(self, name: str, default: int = 0) -> int:
        """Return the first value of a field as a number, decimal or hexadecimal."""
        first = self.fields[name].split(",")[0]
        return int(first, 0) if first else default

    def time_ns(self) -> int:
        """Return the capture time."""
        seconds, fraction = self.fields["time"].split(".")
        magnitude = abs(int(seconds)) * 10**9 + int(fraction.ljust(9, "0"))
        return -magnitude if seconds.startswith("-") else magnitude

    def is_tcp(self) -> bool:
        """Tell whether the capture has all 20 octets of a TCP header."""
        return self.fields["urgent"] != ""


def ask(path: Path) -> list[Row]:
    """Return tshark's fields of a capture; if tshark ends early, of the frames before."""
    question = repr((_version(), FIELDS, PREFERENCES, WITHOUT))
    key = hashlib.sha256(question.encode() + path.read_bytes()).hexdigest()
    kept = CACHE / key[:32]
    try:
        text = zlib.decompress(kept.read_bytes()).decode()
        kept.touch()
    except FileNotFoundError:
        text = _said(path)
        written = kept.with_suffix(f".{os.getpid()}")
        written.write_bytes(zlib.compress(text.encode()))
        written.rename(kept)
    return [Row(dict(zip(FIELDS, line.split("\t"), strict=True))) for line in text.splitlines()]


@cache
def _version() -> str:
    """Return tshark's version; once per session remove old answers."""
    CACHE.mkdir(parents=True, exist_ok=True)
    for kept in CACHE.iterdir():
        if kept.stat().st_mtime < time.time() - KEPT_S:
            kept.unlink(missing_ok=True)
    return subprocess.run(["tshark", "-v"], capture_output=True, text=True, check=True).stdout


def _said(path: Path) -> str:
    settings = [part for name, value in PREFERENCES.items() for part in ("-o", f"{name}:{value}")]
    disabled = [part for name in WITHOUT for part in ("--disable-protocol", name)]
    wanted = [part for field in FIELDS.values() for part in ("-e", field)]
    done = subprocess.run(
        [
            "tshark",
            "-n",
            "-r",
            path,
            *settings,
            *disabled,
            "-T",
            "fields",
            "-E",
            "occurrence=a",
            *wanted,
        ],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"TZ": "UTC", "HOME": "/nonexistent"},
    )
    if done.returncode != 0 and "cut short" not in done.stderr:
        raise RuntimeError(f"tshark {path}: {done.stderr}")
    return done.stdout


def ask_all(paths: Iterable[Path]) -> Iterator[list[Row]]:
    """Return the fields of many captures, with one tshark per processor."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        yield from pool.map(ask, paths)
