"""Captures of one path at two points, made without files."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from capture_analysis.columns import (
    FLAG_ACK,
    FLOW,
    FlowTable,
    IntArray,
    Packets,
    empty_columns,
)


class ColumnCapture:
    """Stands for a `Capture`: packets from columns, in chunks whose memory is used again.

    Args:
        packets: all of them, in file order.
        flows: their connections.
        chunk: packets per chunk.
    """

    def __init__(self, packets: Packets, flows: FlowTable, chunk: int = 1 << 16) -> None:
        self.packets, self.flows, self.chunk = packets, flows, chunk
        self.warnings: list[str] = []

    def chunks(self) -> Iterator[Packets]:
        """The packets, in parts; each part overwrites the last."""
        for first in range(0, len(self.packets), self.chunk):
            part = self.packets.where(slice(first, first + self.chunk))
            copy = part.where(np.arange(len(part)))
            yield copy
            copy.time_ns[:] = -1
            copy.seq[:] = 0


def flow_table(count: int, version: int = 4) -> FlowTable:
    """Connections 10.0.0.i:40000+i > 10.1.0.i:5001."""
    rows = np.zeros(count, dtype=FLOW)
    rows["version"] = version
    for end, net in (("source", 0), ("destination", 1)):
        address = rows[end]
        address[:, 10:12] = 0xFF
        address[:, 12:14] = (10, net)
        address[:, 14] = np.arange(count) // 256
        address[:, 15] = np.arange(count) % 256
    rows["source_port"] = 40000 + np.arange(count)
    rows["destination_port"] = 5001
    return FlowTable(rows)


def columns(count: int, **values: Any) -> Packets:
    """Packets with given columns; others are 0, flags ACK and frames of payload and 66 bytes."""
    packets = empty_columns(count)
    for name in vars(packets):
        getattr(packets, name)[:] = values.get(name, FLAG_ACK if name == "flags" else 0)
    if "frame_bytes" not in values:
        packets.frame_bytes[:] = packets.payload_bytes + np.uint32(66)
    return packets


def at(packets: Packets, time_ns: IntArray | Sequence[int]) -> Packets:
    """The packets captured at other times, in the order of those."""
    times = np.asarray(time_ns, dtype=np.int64)
    order = np.argsort(times, kind="stable")
    return replace(packets.where(order), time_ns=times[order])
