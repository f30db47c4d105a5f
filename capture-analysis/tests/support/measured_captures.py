"""Captures for the tests of measures, made of columns with known answers.

One connection, or several, each with data in one direction over a bottleneck of 100 Mbit/s and ACKs
that come back spaced or compressed.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from capture_analysis.columns import COLUMN_TYPES, FLAG_ACK, FLAG_SYN, IntArray, Mark, Packets
from capture_analysis.flow_table import FLOW, FlowTable, Seen
from capture_analysis.reading.datagrams import NO_DATAGRAMS, Datagrams
from capture_analysis.reading.parsing import Counts

START_NS = 946_684_800_000_000_000
MSS, FRAME, ACK_FRAME = 1448, 1514, 66
RATE_BIT = 100_000_000
SEGMENT_NS, ACK_NS = FRAME * 80, ACK_FRAME * 80  # transmission times at that rate
ROUND_TRIP_NS = 20_000_000


@dataclass
class Exchange:
    """Data of one connection and its ACKs, as a tap sees them; columns of any length.

    Attributes:
        data_ns, first: when each segment passes, and its first byte (the first of all is 1).
        ack_ns, acked: when each pure ACK passes, and the next byte it expects.
        stamp: reading of the receiver's clock when it makes each ACK, in its ticks.
        to_receiver_ns: time from the tap to the receiver and back.
        host: makes addresses differ.
        isn: initial sequence number of the data.
    """

    data_ns: IntArray
    first: IntArray
    ack_ns: IntArray
    acked: IntArray
    stamp: IntArray | None = None
    to_receiver_ns: int = ROUND_TRIP_NS
    host: int = 1
    isn: int = 1000
    turned: bool = False
    port: int = 40000


def capture_of(*exchanges: Exchange, handshake: bool = True) -> "ColumnCapture":
    """Return connections' packets in time order, data before ACKs at equal times."""
    parts = [_rows(flow, each, handshake) for flow, each in enumerate(exchanges)]
    columns = {name: np.concatenate([p[name] for p in parts]) for name in COLUMN_TYPES}
    order = np.argsort(columns["time_ns"], kind="stable")
    packets = Packets(**{k: columns[k][order].astype(COLUMN_TYPES[k]) for k in COLUMN_TYPES})
    rows = np.zeros(len(exchanges), dtype=FLOW)
    for row, each in zip(rows, exchanges, strict=True):
        ends = [bytes([*bytes(10), 255, 255, 10, 0, side, each.host]) for side in (1, 2)]
        for end, address in zip(
            ("source", "destination"), ends[:: -1 if each.turned else 1], strict=True
        ):
            row[end] = np.frombuffer(address, "u1")
        row["source_port"], row["destination_port"] = each.port, 5001
        row["base"] = each.isn, 0
        row["seen"] = 3 * (Seen.HALF | (Seen.SYN if handshake else 0))
        row["version"], row["first_ns"] = 4, each.data_ns[0]
    return ColumnCapture(packets, FlowTable(rows))


def _rows(flow: int, each: Exchange, handshake: bool) -> dict[str, IntArray]:
    stamp = each.stamp if each.stamp is not None else np.zeros(len(each.ack_ns), np.int64)
    marks = Mark.TIMESTAMPS if each.stamp is not None else 0
    data = {
        "time_ns": each.data_ns,
        "seq": each.isn + each.first,
        "ack": 1,
        "payload_bytes": MSS,
        "frame_bytes": FRAME,
        "flags": FLAG_ACK,
    }
    acks = {
        "time_ns": each.ack_ns,
        "seq": 1,
        "ack": each.isn + each.acked,
        "frame_bytes": ACK_FRAME,
        "flags": FLAG_ACK,
        "half": 1,
        "ts_value": stamp,
        "marks": int(marks),
    }
    begin_ns = int(min(each.data_ns[0], each.ack_ns[0] if len(each.ack_ns) else each.data_ns[0]))
    third_ns = begin_ns - ROUND_TRIP_NS
    second_ns = third_ns - (ROUND_TRIP_NS - each.to_receiver_ns)
    opening = {
        "time_ns": np.array([second_ns - each.to_receiver_ns, second_ns, third_ns]),
        "seq": np.array([each.isn, 0, each.isn + 1]),
        "ack": np.array([0, each.isn + 1, 1]),
        "frame_bytes": ACK_FRAME,
        "flags": np.array([FLAG_SYN, FLAG_SYN | FLAG_ACK, FLAG_ACK]),
        "half": np.array([0, 1, 0]),
    }
    kinds = [opening, data, acks] if handshake else [data, acks]
    joined = {}
    for name in COLUMN_TYPES:
        columns = [_filled(rows.get(name, 0), len(rows["time_ns"])) for rows in kinds]  # type: ignore[arg-type]
        joined[name] = np.concatenate(columns)
    joined["flow"][:] = flow
    joined["seq"] %= 1 << 32
    joined["ack"] %= 1 << 32
    joined["ts_value"] %= 1 << 32
    joined["window"][:] = 60000
    joined["ip_id"][:] = np.arange(len(joined["ip_id"])) % 65535 + 1
    return joined


def _filled(value: Any, rows: int) -> IntArray:
    return np.array(np.broadcast_to(np.asarray(value, np.int64), rows))


@dataclass
class ColumnCapture:
    """A capture that already consists of columns, with the attributes that `measure` needs."""

    whole: Packets
    flows: FlowTable
    chunk: int = 1 << 16
    path: Path = Path("made.pcap")
    format: str = "columns"
    warnings: list[str] = field(default_factory=list)
    datagrams: Datagrams = NO_DATAGRAMS

    @property
    def counts(self) -> Counts:
        """Return the counts: every frame is a packet."""
        return Counts(frames=len(self.whole), packets=len(self.whole))

    def chunks(self, packets: int = 0) -> Iterator[Packets]:
        """Yield packets in chunks, by default of `chunk` packets; each overwrites the last."""
        packets = packets or self.chunk
        for first in range(0, len(self.whole), packets):
            yield (
                part := self.whole.where(np.arange(first, min(first + packets, len(self.whole))))
            )
            part.time_ns[:] = -1
            part.seq[:] = 0


def compressed(
    *,
    cycles: int = 50,
    window: int = 20,
    bunch: int = 8,
    tick_ns: int = 1000,
    held: bool = False,
    sends: bool = True,
    to_receiver_ns: int = ROUND_TRIP_NS,
    **settings: Any,
) -> Exchange:
    """Make a sender's capture: `window` ACKs per cycle, the last `bunch` of them back to back.

    ACKs are made as data arrives, a segment's transmission time apart, or the last of a cycle as
    fast as possible (`held`). Each ACK releases a segment (`sends`), or data comes at other times.
    """
    cycle_ns = (window + 10) * SEGMENT_NS + ROUND_TRIP_NS
    at = np.arange(window)
    made_ns = at * SEGMENT_NS
    come_ns = made_ns.copy()
    late = at >= window - bunch
    come_ns[late] = made_ns[-1] + np.arange(bunch) * ACK_NS
    if held:
        made_ns = come_ns
    begin_ns = START_NS + np.arange(cycles)[:, None] * cycle_ns
    ack_ns = (begin_ns + ROUND_TRIP_NS + come_ns).ravel()
    stamp = (begin_ns + made_ns).ravel() // tick_ns
    segments = cycles * window
    acked = 1 + MSS * np.arange(1, segments + 1)
    first_window_ns = START_NS + np.arange(window) * 1000
    released_ns = np.concatenate((first_window_ns, ack_ns + 100))
    data_ns = released_ns if sends else ack_ns - ROUND_TRIP_NS
    first = 1 + MSS * np.arange(len(data_ns))
    return Exchange(data_ns, first, ack_ns, acked, stamp, to_receiver_ns=to_receiver_ns, **settings)


def arriving(
    *, bursts: int = 50, segments: int = 12, cycle_ns: int = 5_000_000, **settings: Any
) -> Exchange:
    """Make a receiver's capture: bursts of data at the bottleneck's rate, all acknowledged."""
    offsets = np.arange(segments) * SEGMENT_NS
    data_ns = (START_NS + np.arange(bursts)[:, None] * cycle_ns + offsets).ravel()
    first = 1 + MSS * np.arange(len(data_ns))
    return Exchange(data_ns, first, data_ns + 1000, first + MSS, to_receiver_ns=1000, **settings)


def values(measured: Any, direction: int) -> SimpleNamespace:
    """Return every quantity of a direction by name."""
    found: dict[str, Any] = {}
    for each in measured.estimators:
        values = each.of_direction(direction, measured.tally, measured.facts)
        found |= {definition.name: value for definition, value in values.items()}
    return SimpleNamespace(**found)
