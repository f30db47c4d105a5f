"""The tracker in C (native/track.c), by ctypes."""

import ctypes
import weakref

import numpy as np

from capture_analysis import native
from capture_analysis.columns import COLUMN_TYPES, FlowTable, IntArray, Packets
from capture_analysis.tracking import TRACKED_TYPES, Forgotten, Tracked

# As enum ca_track_status in native/track.h.
_NO_SUCH_FLOW, _NO_MEMORY = 1, 2

# As struct ca_columns and struct ca_tracked: pointers and nothing else.
_Columns = ctypes.c_void_p * len(COLUMN_TYPES)
_Tracked = ctypes.c_void_p * len(TRACKED_TYPES)


class _Forgotten(ctypes.Structure):
    """As struct ca_forgotten in native/track.h."""

    _fields_ = [("holes", ctypes.c_uint64), ("segments", ctypes.c_uint64)]


class NativeTracker:
    """See `Tracker`.

    Raises: AnalysisError if there is no library (`native.available`).
    """

    def __init__(self) -> None:
        self._library = native.load()
        self._tracker = self._library.ca_tracker_new()
        if not self._tracker:
            raise MemoryError
        weakref.finalize(self, self._library.ca_tracker_free, self._tracker)
        self._rows = _empty_rows(0)

    @property
    def forgotten(self) -> Forgotten:
        """What was let go so far."""
        at = self._library.ca_tracker_forgotten(self._tracker)
        forgotten = _Forgotten.from_address(at)
        return Forgotten(forgotten.holes, forgotten.segments)

    def track(self, packets: Packets, flows: FlowTable) -> Tracked:
        """See `Tracker.track`."""
        columns = [
            np.ascontiguousarray(getattr(packets, name), dtype=kind)
            for name, kind in COLUMN_TYPES.items()
        ]
        if any(column.shape != (len(packets),) for column in columns):
            raise ValueError("columns must be of one length")
        if len(self._rows) < len(packets):
            self._rows = _empty_rows(len(packets))
        status = self._library.ca_tracker_track(
            self._tracker,
            _Columns(*map(_address, columns)),
            len(packets),
            len(flows),
            _Tracked(*map(_address, vars(self._rows).values())),
        )
        if status == _NO_SUCH_FLOW:
            raise ValueError("a packet of a connection that is not in the table")
        if status == _NO_MEMORY:
            raise MemoryError
        return self._rows.where(slice(len(packets)))


def _empty_rows(rows: int) -> Tracked:
    return Tracked(*(np.empty(rows, dtype) for dtype in TRACKED_TYPES.values()))


def _address(column: IntArray) -> int:
    return int(column.ctypes.data)
