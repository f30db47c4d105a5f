"""Open a capture file and read it in chunks of packets.

TEMPORARY: reads classic pcap files of Ethernet and IPv4 only, until the parsers are there.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from capture_analysis.columns import (
    COLUMN_TYPES,
    FLAG_SYN,
    FLOW,
    NO_SCALE,
    FlowTable,
    Mark,
    Packets,
    concatenate,
)
from capture_analysis.parsing import Counts

CHUNK_PACKETS = 1 << 16


class Capture:
    """A capture being read; `flows` and `counts` grow as `chunks` advances.

    Args:
        path: the file; "-" is standard input.

    Attributes:
        flows: the connections seen so far.
        counts: what became of the frames so far.
        warnings: sentences about what is wrong with the file (it ends inside a record, ...).
        format: such as "pcap, little-endian, ns".
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.counts = Counts()
        self.warnings: list[str] = []
        self.format = "pcap"
        self.flows = FlowTable(np.zeros(0, dtype=FLOW))

    def chunks(self, packets: int = CHUNK_PACKETS) -> Iterator[Packets]:
        """The packets, at most so many at a time.

        The columns are overwritten by the next chunk: copy what must last.
        """
        whole = _seam(self)
        for first in range(0, len(whole), packets):
            yield whole.where(slice(first, first + packets))


def read_capture(path: Path) -> tuple[Packets, FlowTable]:
    """All packets of a capture at once, int64 columns, and its connections.

    Raises: AnalysisError if the file is no capture, or was cut off.
    """
    capture = Capture(path)
    parts = [chunk.widened() for chunk in capture.chunks()]
    return concatenate(parts), capture.flows


def _seam(capture: Capture) -> Packets:
    from capture_analysis import reader as old

    p = old.read_capture(capture.path)
    n = len(p)
    low = (p.source << 16) | p.source_port
    high = (p.destination << 16) | p.destination_port
    pair = np.stack((np.minimum(low, high), np.maximum(low, high)), axis=1)
    _, first, inverse = np.unique(pair, axis=0, return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    flow = rank[inverse.ravel()]
    rows = np.zeros(len(first), dtype=FLOW)
    half = np.zeros(n, dtype=np.int64)
    for k, at in enumerate(np.sort(first)):
        row = rows[k]
        for end in ("source", "destination"):
            value = int(getattr(p, end)[at])
            row[end] = np.frombuffer(bytes(10) + b"\xff\xff" + value.to_bytes(4, "big"), "u1")
            row[f"{end}_port"] = getattr(p, f"{end}_port")[at]
        row["first_ns"] = p.time_ns[at]
        row["window_scale"] = NO_SCALE
        row["version"] = 4
        mine = flow == k
        half[mine & (low != low[at])] = 1
        for h in (0, 1):
            which = np.flatnonzero(mine & (half == h))
            if len(which):
                row["base"][h] = p.seq[which[0]]
                row["base_seen"][h] = 1
                row["syn_seen"][h] = (p.flags[which[0]] & FLAG_SYN) != 0
                if row["syn_seen"][h]:
                    row["mss"][h] = 1460
                    row["window_scale"][h] = 7
        rows[k] = row
    capture.flows = FlowTable(rows)
    capture.counts.frames = capture.counts.packets = n
    timestamps = np.zeros(n, dtype=np.int64)
    columns: dict[str, Any] = {
        "time_ns": p.time_ns,
        "frame_bytes": p.frame_bytes,
        "payload_bytes": p.payload_bytes,
        "flow": flow,
        "seq": p.seq,
        "ack": p.ack,
        "ts_value": p.ts_value,
        "ts_echo": p.ts_echo,
        "sack_left": timestamps,
        "sack_right": timestamps,
        "window": p.window,
        "ip_id": p.ip_id,
        "interface": timestamps,
        "flags": p.flags,
        "half": half,
        "marks": (p.ts_value > 0) * int(Mark.TIMESTAMPS),
    }
    return Packets(**{k: v.astype(COLUMN_TYPES[k]) for k, v in columns.items()})
