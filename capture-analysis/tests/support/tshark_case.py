"""A capture of the corpus as we read it, with tshark's fields."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from capture_analysis.columns import Mark, Packets, concatenate, empty_columns
from capture_analysis.flow_table import FlowTable
from capture_analysis.reading.capture import Capture
from capture_analysis.reading.parsing import Counts
from capture_analysis.tracking import TRACKED_TYPES, Tracked, Tracker
from corpus import Specimen
from tshark_oracle import Row, ask_all

CHUNK_PACKETS = 37


@dataclass(frozen=True)
class Case:
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


def cases(specimens: Iterable[Specimen]) -> list[Case]:
    """Read the captures of a corpus; return each with tshark's fields."""
    known = list(specimens)
    answers = ask_all(each.asked or each.path for each in known)
    return [_case(each, rows) for each, rows in zip(known, answers, strict=True)]


def _case(specimen: Specimen, rows: list[Row]) -> Case:
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
    return Case(specimen, concatenate(packets), Tracked(**joined), flows, counts, rows)


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
