"""Captures of one path at two points, made without files."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from capture_analysis.columns import (
    FLAG_ACK,
    BoolArray,
    IntArray,
    Packets,
    concatenate,
    empty_columns,
)
from capture_analysis.flow_table import FLOW, FlowTable
from measured_captures import ColumnCapture


def flow_table(count: int, version: int = 4) -> FlowTable:
    """Make connections 10.0.0.i:40000+i > 10.1.0.i:5001."""
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
    """Make packets with given columns; by default these are 0, ACK and frames of payload + 66."""
    packets = empty_columns(count)
    for name in vars(packets):
        getattr(packets, name)[:] = values.get(name, FLAG_ACK if name == "flags" else 0)
    if "frame_bytes" not in values:
        packets.frame_bytes[:] = packets.payload_bytes + np.uint32(66)
    return packets


def at(packets: Packets, time_ns: IntArray | Sequence[int]) -> Packets:
    """Return the packets as captured at other times, in the order of these."""
    times = np.asarray(time_ns, dtype=np.int64)
    order = np.argsort(times, kind="stable")
    return replace(packets.where(order), time_ns=times[order])


def fifo(arrived_ns: IntArray, service_ns: IntArray) -> IntArray:
    """Return when each packet leaves a queue that it enters in this order, with service times."""
    before = np.concatenate(([0], np.cumsum(service_ns)[:-1]))
    start = np.maximum.accumulate(arrived_ns - before)
    return np.asarray(start + before + service_ns)


DATA_BYTES, ACK_BYTES, MSS = 1066, 66, 1000
NS_PER_BYTE = 1000
PROPAGATION_NS = 10_000_000
DATA_NS, ACK_NS = DATA_BYTES * NS_PER_BYTE, ACK_BYTES * NS_PER_BYTE
CYCLES, BURST, ACKS = 40, 20, 12
CYCLE_NS = 60_000_000
START_NS = 1_700_000_000_000_000_000


class TwoWayPath:
    """Two connections through a queue in each direction, with ACKs compressed in every cycle.

        A ==== 1066 us per segment, 66 us per ACK, then 10 ms ==== B

    In each cycle of 60 ms, connection 0 sends 12 segments from A's side, 11 ms later connection 1
    sends 20 at once from B's side. The ACKs for the 12, sent one segment's time apart, get behind
    those 20 and leave B's queue back to back: 40 compression events of 12 ACKs, 66/1066. Nothing
    else is compressed.

    Attributes:
        packets: all packets, by their first tap, with numbers that wrap at 2^32.
        a_ns, b_ns: times at which each passes the taps, on one clock.
    """

    def __init__(self, *, version: int = 4) -> None:
        cycle = np.repeat(np.arange(CYCLES), ACKS)
        number = np.tile(np.arange(ACKS), CYCLES)
        burst = np.repeat(np.arange(CYCLES), BURST), np.tile(np.arange(BURST), CYCLES)
        self.flows = flow_table(2, version)
        parts: list[tuple[int, Any, dict[str, Any]]] = []
        # A handshake without other packets on the path: the shortest delay in both directions.
        for flow in (0, 1):
            for half in (0, 1):
                at_ns = START_NS - 400_000_000 + flow * 100_000_000 + half * 40_000_000
                parts.append(
                    (half ^ flow, [at_ns], {"flow": flow, "half": half, "flags": 2 + 16 * half})
                )
        data0 = START_NS + cycle * CYCLE_NS
        parts.append((0, data0, self._data(0, cycle * ACKS + number)))
        arrived0 = fifo(data0, np.full(len(data0), DATA_NS)) + PROPAGATION_NS
        parts.append((1, arrived0, self._acks(0, cycle * ACKS + number)))
        data1 = START_NS + burst[0] * CYCLE_NS + 11_000_000
        parts.append((1, data1, self._data(1, burst[0] * BURST + burst[1])))
        # The ACKs of the data: sent when A has the data, in the order in which they leave the
        # queue.
        passed = self._crossed([each for each in parts if each[0] == 1])
        mine = passed[1].flow == 1
        mine &= passed[1].payload_bytes > 0
        parts.append((0, passed[2][mine], self._acks(1, burst[0] * BURST + burst[1])))
        ways = [self._crossed([each for each in parts if each[0] == way]) for way in (0, 1)]
        self.packets = concatenate([way[1] for way in ways])
        self.way = np.repeat([0, 1], [len(way[1]) for way in ways])
        first, second = (np.concatenate([way[at] for way in ways]) for at in (0, 2))
        self.a_ns = np.where(self.way == 0, first, second)
        self.b_ns = np.where(self.way == 0, second, first)
        if version == 4:
            for half in (0, 1):
                for flow in (0, 1):
                    mine = (self.packets.half == half) & (self.packets.flow == flow)
                    self.packets.ip_id[mine] = np.arange(mine.sum()) + 1

    def _data(self, flow: int, number: IntArray) -> dict[str, Any]:
        seq = (number * MSS + (1 << 32) - (5 + 1000 * flow) * MSS) % (1 << 32)
        return {"flow": flow, "half": 0, "seq": seq, "payload_bytes": MSS, "ack": 1}

    def _acks(self, flow: int, number: IntArray) -> dict[str, Any]:
        ack = ((number + 1) * MSS + (1 << 32) - (5 + 1000 * flow) * MSS) % (1 << 32)
        return {"flow": flow, "half": 1, "seq": 1, "ack": ack}

    def _crossed(self, parts: list[Any]) -> tuple[IntArray, Packets, IntArray]:
        """Return packets of one direction in order, with times at entry and at the far tap."""
        packets = concatenate([columns(len(times), **values) for _, times, values in parts])
        first = np.concatenate([np.asarray(times, dtype=np.int64) for _, times, _ in parts])
        order = np.argsort(first, kind="stable")
        packets, first = packets.where(order), first[order]
        service = packets.frame_bytes.astype(np.int64) * NS_PER_BYTE
        return first, packets, fifo(first, service) + PROPAGATION_NS

    def capture(
        self,
        tap: str,
        keep: BoolArray | None = None,
        *,
        copies: int = 1,
        offset_ns: int = 0,
        drift: float = 0.0,
        chunk: int = 1 << 16,
    ) -> ColumnCapture:
        """Return a tap's capture.

        Args:
            tap: "a" or "b".
            keep: shape (n,), the packets that it has; all by default.
            copies: number of copies of each, at once.
            offset_ns: of its clock at START_NS.
            drift: of its clock, ns per ns.
            chunk: packets per chunk.
        """
        time_ns = {"a": self.a_ns, "b": self.b_ns}[tap]
        rows = np.flatnonzero(keep) if keep is not None else np.arange(len(time_ns))
        rows = np.repeat(rows, copies)
        times = time_ns[rows]
        shift = offset_ns + np.rint(drift * (times - START_NS)).astype(np.int64)
        seen = at(self.packets.where(rows), times + shift)
        flows = FlowTable(self.flows.rows.copy())
        return ColumnCapture(seen, flows, chunk)
