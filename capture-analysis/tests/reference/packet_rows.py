"""Rows of packets and their keys in numpy; clib/match.c must equal them."""

import numpy as np
from capture_analysis.columns import IntArray, Packets
from capture_analysis.flow_table import FlowTable
from capture_analysis.two_captures.match_rows import ROW, Rows
from capture_analysis.two_captures.packet_key import FACTORS, PacketKeys


def rows_of(
    packets: Packets,
    time_ns: IntArray,
    kind: IntArray | None,
    keys: PacketKeys,
    *,
    flows: FlowTable,
    first_order: int,
) -> Rows:
    """Make rows of packets, see match_rows.rows_of."""
    rows = np.empty(len(packets), dtype=ROW)
    rows["time_ns"], rows["key"] = time_ns, _keys(packets, keys, flows)
    rows["order"] = np.arange(first_order, first_order + len(packets))
    rows["kind"] = 0 if kind is None else kind
    for name in ("flow", "seq", "ack", "payload_bytes", "frame_bytes", "flags", "half"):
        rows[name] = getattr(packets, name)
    return rows


def _keys(packets: Packets, keys: PacketKeys, flows: FlowTable) -> IntArray:
    words = [
        (packets.seq, packets.ack),
        (packets.ts_value, packets.ts_echo),
        (packets.sack_left, packets.sack_right),
        (packets.payload_bytes, packets.window),
    ]
    last = packets.flags.astype(np.uint32)
    if keys.identity.ip_id:
        last |= packets.ip_id.astype(np.uint32) << np.uint32(16)
    lanes = keys.lanes(flows)
    mixed = last * FACTORS[0]
    if lanes is not None:
        mixed += lanes[packets.flow.astype(np.int64) * 2 + packets.half]
    for factor, (high, low) in zip(FACTORS[1:], words, strict=False):
        mixed += (high.astype(np.uint64) << np.uint64(32) | low) * factor
    mixed ^= mixed >> np.uint64(29)
    mixed *= FACTORS[-1]
    key: IntArray = mixed.view(np.int64)
    return key
