"""Wireshark's dissection of a capture's frames, one row of fields per frame, and our reading.

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
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np
from capture_analysis.columns import Mark, Packets, concatenate, empty_columns
from capture_analysis.flow_table import FlowTable
from capture_analysis.reading.capture import Capture
from capture_analysis.reading.parsing import Counts
from capture_analysis.tracking import TRACKED_TYPES, Tracked, Tracker
from corpus import Specimen

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

    def ns(self, name: str) -> int:
        """Return a time in ns; -1 for none."""
        seconds, _, fraction = self.fields[name].partition(".")
        magnitude = abs(int(seconds or 0)) * 10**9 + int(fraction.ljust(9, "0"))
        return (-magnitude if seconds.startswith("-") else magnitude) if seconds else -1

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


CHUNK_PACKETS = 37


@dataclass(frozen=True)
class Compared:
    """A capture as read, and tshark's fields."""

    specimen: Specimen
    packets: Packets
    tracked: Tracked
    flows: FlowTable
    counts: Counts
    rows: list[Row]

    @property
    def name(self) -> str:
        """The name of the specimen."""
        return self.specimen.name

    @cached_property
    def tcp(self) -> list[Row]:
        """Return the frames for which tshark shows a TCP header and a time."""
        return [row for row in self.rows if fate(row) == "packets"]

    @cached_property
    def streams(self) -> list[int]:
        """Return the streams of TCP frames, numbered in order of appearance."""
        numbers: dict[str, int] = {}
        return [numbers.setdefault(row["stream"], len(numbers)) for row in self.tcp]

    @cached_property
    def has_namesakes(self) -> bool:
        """Tell whether connections in different VLANs have the same ends."""
        filters = map(self.flows.wireshark_filter, range(len(self.flows)))
        return any("vlan" in each for each in filters)

    def marked(self, n: int, mark: Mark) -> bool:
        """Tell whether a packet has a mark."""
        return bool(int(self.packets.marks[n]) & mark)

    def where(self, n: int) -> str:
        """Describe a packet, for messages."""
        return f"{self.name}: packet {n} (frame {self.tcp[n]['number']})"


def cases(specimens: Iterable[Specimen]) -> list[Compared]:
    """Read the captures of a corpus; return each with tshark's fields."""
    known = list(specimens)
    answers = ask_all(each.asked or each.path for each in known)
    return [_case(each, rows) for each, rows in zip(known, answers, strict=True)]


def _case(specimen: Specimen, rows: list[Row]) -> Compared:
    capture, follower = Capture(specimen.path), Tracker()
    packets, tracked = [empty_columns(0).widen()], [_no_rows()]
    for part in capture.chunks(CHUNK_PACKETS):
        packets.append(part.widen())
        columns = vars(follower.track(part, capture.flows))
        tracked.append({name: column.astype(np.int64) for name, column in columns.items()})
    joined: dict[str, Any] = {
        name: np.concatenate([part[name] for part in tracked]) for name in TRACKED_TYPES
    }
    flows, counts = capture.flows, capture.counts
    return Compared(specimen, concatenate(packets), Tracked(**joined), flows, counts, rows)


def _no_rows() -> dict[str, Any]:
    return {name: np.empty(0, dtype=np.int64) for name in TRACKED_TYPES}


def fate(row: Row) -> str:
    """Return a frame's fate by tshark's fields; a frame that tshark cannot dissect is too short.

    tshark looks behind IPv4's authentication header; we do behind IPv6's only.
    """
    layers = row["protocols"].split(":")
    if not row["time"]:
        return "no_timestamp"
    if not {"ip", "ipv6"} & set(layers):
        return "not_ip"
    protocol = row["ipv6_fragmented"] or row["ipv6_next"] or "6"
    if row["ip_protocol"] not in ("", "6") or (protocol != "6" and "tcp" not in layers):
        return "not_tcp"
    if row.number("ip_fragment") or row.number("ipv6_fragment"):
        return "later_fragments"
    return "packets" if row.is_tcp() else "too_short"
