"""Rows of packets and their pairs, made in C (native/match.c), by ctypes."""

import ctypes

import numpy as np

from capture_analysis import native
from capture_analysis.columns import COLUMN_TYPES, FlowTable, IntArray, Packets
from capture_analysis.two_captures.match_rows import ROW, Rows
from capture_analysis.two_captures.packet_key import FACTORS, PacketKeys

# Of the key: five words, and the last mixing.
_WORD_FACTORS = np.ascontiguousarray(FACTORS[[0, 1, 2, 3, 4, -1]])
_FAILED = ctypes.c_size_t(-1).value


class _Columns(ctypes.Structure):
    """As struct ca_columns in native/parser.h."""

    _fields_ = [(name, ctypes.c_void_p) for name in COLUMN_TYPES]


class _Keys(ctypes.Structure):
    """As struct ca_match_keys in native/match.h."""

    _fields_ = [
        ("factors", ctypes.c_void_p),
        ("lanes", ctypes.c_void_p),
        ("lane_count", ctypes.c_size_t),
        ("first_order", ctypes.c_uint64),
        ("with_ip_id", ctypes.c_uint32),
    ]


def rows(
    packets: Packets,
    time_ns: IntArray,
    kind: IntArray | None,
    keys: PacketKeys,
    *,
    flows: FlowTable,
    first_order: int,
) -> Rows:
    """What `matching.numpy_rows` makes.

    Raises: IndexError if a packet is of no connection in the table.
    """
    columns = [
        np.ascontiguousarray(getattr(packets, name), dtype=kind_of)
        for name, kind_of in COLUMN_TYPES.items()
    ]
    time_ns = np.ascontiguousarray(time_ns, dtype=np.int64)
    kinds = None if kind is None else np.ascontiguousarray(kind, dtype=np.uint8)
    lanes = keys.lanes(flows)
    made = np.empty(len(packets), dtype=ROW)
    count = native.load().ca_match_rows(
        ctypes.byref(
            _Keys(
                _WORD_FACTORS.ctypes.data,
                None if lanes is None else lanes.ctypes.data,
                0 if lanes is None else len(lanes),
                first_order,
                keys.identity.ip_id,
            )
        ),
        ctypes.byref(_Columns(*(column.ctypes.data for column in columns))),
        time_ns.ctypes.data,
        None if kinds is None else kinds.ctypes.data,
        len(packets),
        made.ctypes.data,
    )
    if count < len(packets):
        raise IndexError("a packet of a connection that is not in the table")
    return made


def join(a: Rows, b: Rows, horizon_ns: int) -> tuple[IntArray, IntArray]:
    """What `joining.join` gives."""
    a, b = np.ascontiguousarray(a), np.ascontiguousarray(b)
    found = np.empty((2, min(len(a), len(b))), dtype=np.int64)
    count = native.load().ca_match_join(
        a.ctypes.data,
        len(a),
        b.ctypes.data,
        len(b),
        horizon_ns,
        native.random_bits(),
        found[0].ctypes.data,
        found[1].ctypes.data,
    )
    if count == _FAILED:
        raise MemoryError
    return found[0, :count], found[1, :count]
