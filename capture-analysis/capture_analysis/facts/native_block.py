"""A block of packets as C reads it, in order of capture.

The functions of clib that take a struct ca_block add to numbers of each direction (LaneArray).
"""

import ctypes

import numpy as np

from capture_analysis import clib
from capture_analysis.columns import IntArray, Packets
from capture_analysis.facts.facts import Facts
from capture_analysis.tracking import TRACKED_TYPES, Tracked

# Columns of Facts, in the order of struct ca_facts in clib/block.h.
FACTS = {
    "tap_at": np.float64,
    "round_trip_ns": np.float64,
    "handshake_ns": np.float64,
    "tick_whole_ns": np.int64,
    "segment_bytes": np.int64,
    "longest_bytes": np.int64,
    "window_shift": np.int64,
}


class _Block(ctypes.Structure):
    """Laid out as struct ca_block in clib/block.h."""

    _fields_ = [
        ("packets", clib.Columns),
        ("tracked", ctypes.c_void_p * len(TRACKED_TYPES)),
        ("facts", ctypes.c_void_p * len(FACTS)),
        ("rows", ctypes.c_size_t),
    ]


class NativeBlock:
    """Columns of packets, and facts of their directions, that C reads.

    Raises: ValueError if columns differ in length, or a packet's direction has no facts.
    """

    def __init__(self, packets: Packets, tracked: Tracked, facts: Facts) -> None:
        rows, self.directions = len(packets), len(facts)
        if int(packets.flow.max(initial=0)) >= max(self.directions // 2, 1):
            raise ValueError("a packet of a connection without facts")
        read, kept = clib.Columns.from_packets(packets)
        columns = [_column(tracked, name, kind) for name, kind in TRACKED_TYPES.items()]
        if any(column.shape != (rows,) for column in columns):
            raise ValueError("columns must be of one length")
        known = [_column(facts, name, np.dtype(kind)) for name, kind in FACTS.items()]
        self._kept = kept, columns, known
        addresses = [tuple(each.ctypes.data for each in one) for one in (columns, known)]
        self._block = _Block(read, *addresses, rows)

    def add(self, function: str, *state: object) -> int:
        """Call a function of the library with the block, and addresses of the sums to add to."""
        return int(getattr(clib.load(), function)(ctypes.byref(self._block), *state) or 0)


class Chains:
    """Rows of four numbers that directions take and free, linked by the last number.

    Laid out as struct ca_all_coming in clib/limits.h, and as struct ca_all_holes in
    clib/receiving.h.
    """

    def __init__(self) -> None:
        self._rows, self._free, self._taken = np.zeros((0, 4), dtype=np.int64), -1, 0

    def add(
        self, block: NativeBlock, function: str, state: int, sums: int, most: int, *rest: object
    ) -> None:
        """Call a function of the library with sums, rows, and room for `most` more rows."""
        rows = len(self._rows)
        if (missing := most - rows + self._taken) > 0:
            more = np.zeros((max(missing, rows // 4), 4), dtype=np.int64)
            more[:, -1] = np.arange(rows + 1, rows + len(more) + 1)
            more[-1, -1] = self._free
            self._rows, self._free = np.concatenate((self._rows, more)), rows
        chains = _Chains(self._rows.ctypes.data, self._free)
        self._taken += block.add(function, state, ctypes.byref(chains), sums, *rest)
        self._free = chains.free


class _Chains(ctypes.Structure):
    _fields_ = [("rows", ctypes.c_void_p), ("free", ctypes.c_int64)]


def _column(of: object, name: str, kind: "np.dtype[np.generic]") -> IntArray:
    column: IntArray = np.ascontiguousarray(getattr(of, name), dtype=kind)
    return column
