"""Make rows of packets that wait for partners; select among them."""

import ctypes
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from capture_analysis import clib
from capture_analysis.columns import BoolArray, IntArray, Packets
from capture_analysis.flow_table import FlowTable
from capture_analysis.two_captures.packet_key import FACTORS, PacketKeys

Rows = NDArray[np.void]

# The fields of a packet that are kept until its partner is found. `time_ns` is on the first
# capture's clock, `order` is the packet's number in its capture.
ROW = np.dtype(
    [
        ("time_ns", "<i8"),
        ("order", "<i8"),
        ("key", "<i8"),
        ("flow", "<u4"),
        ("seq", "<u4"),
        ("ack", "<u4"),
        ("payload_bytes", "<u4"),
        ("frame_bytes", "<u4"),
        ("flags", "<u2"),
        ("half", "u1"),
        ("kind", "u1"),
    ]
)
_WORDS = ROW.itemsize // 8
# Factors of the key's five words, and of the last mixing.
_WORD_FACTORS = np.ascontiguousarray(FACTORS[[0, 1, 2, 3, 4, -1]])


class _Keys(ctypes.Structure):
    """Laid out as struct ca_match_keys in clib/match.h."""

    _fields_ = [
        ("factors", ctypes.c_void_p),
        ("lanes", ctypes.c_void_p),
        ("lane_count", ctypes.c_size_t),
        ("first_order", ctypes.c_uint64),
        ("with_ip_id", ctypes.c_uint32),
    ]


def rows_of(
    packets: Packets,
    time_ns: IntArray,
    kind: IntArray | None,
    keys: PacketKeys,
    *,
    flows: FlowTable,
    first_order: int,
) -> Rows:
    """Make rows of packets, in C (clib/match.c).

    Args:
        packets: columns of shape (n,).
        time_ns: shape (n,), on the first capture's clock.
        kind: shape (n,), or None if not tracked.
        keys: hashes the packets.
        flows: the connections of these packets.
        first_order: number of the first packet in its capture.

    Raises: IndexError if the connection of a packet is not in `flows`.
    """
    columns, _kept = clib.Columns.from_packets(packets)
    time_ns = np.ascontiguousarray(time_ns, dtype=np.int64)
    kinds = None if kind is None else np.ascontiguousarray(kind, dtype=np.uint8)
    lanes = keys.lanes(flows)
    made = np.empty(len(packets), dtype=ROW)
    count = clib.load().ca_match_rows(
        ctypes.byref(
            _Keys(
                _WORD_FACTORS.ctypes.data,
                None if lanes is None else lanes.ctypes.data,
                0 if lanes is None else len(lanes),
                first_order,
                keys.identity.ip_id,
            )
        ),
        ctypes.byref(columns),
        time_ns.ctypes.data,
        None if kinds is None else kinds.ctypes.data,
        len(packets),
        made.ctypes.data,
    )
    if count < len(packets):
        raise IndexError("a packet of a connection that is not in the table")
    return made


def take(rows: Rows, which: IntArray) -> Rows:
    """Select rows by number; several times as fast as indexing records."""
    words = rows.view(np.int64).reshape(-1, _WORDS)
    return words.take(which, axis=0).view(rows.dtype).reshape(-1)


def select_rows(rows: Rows, which: BoolArray) -> Rows:
    """Select rows by a mask; the same array if all are selected."""
    chosen = np.flatnonzero(which)
    return rows if len(chosen) == len(rows) else take(rows, chosen)


def append_parts(parts: Sequence[Rows]) -> Rows:
    """Append rows of several parts.

    Several times as fast as concatenating records.
    """
    words = np.concatenate([part.view(np.int64).reshape(-1, _WORDS) for part in parts])
    return words.view(parts[0].dtype).reshape(-1)
