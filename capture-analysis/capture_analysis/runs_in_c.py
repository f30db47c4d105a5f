"""Runs found in C (native/runs.c), by ctypes."""

import ctypes
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from capture_analysis import native
from capture_analysis.columns import BoolArray, IntArray

if TYPE_CHECKING:
    from capture_analysis.runs import Runs


MOST_VALUES = 4


class _Packets(ctypes.Structure):
    """As struct ca_run_packets in native/runs.h."""

    _fields_ = [
        *((name, ctypes.c_void_p) for name in ("lane", "joined", "time_ns")),
        ("value_count", ctypes.c_size_t),
        ("values", ctypes.c_void_p * MOST_VALUES),
    ]


class _Runs(ctypes.Structure):
    """As struct ca_runs in native/runs.h."""

    _fields_ = [
        *((name, ctypes.c_void_p) for name in ("lane", "rows", "first_ns", "last_ns", "total")),
        ("stride", ctypes.c_size_t),
    ]

    @classmethod
    def of(cls, runs: "Runs") -> "_Runs":
        """Where the columns lie, which must live on."""
        return cls(*(column.ctypes.data for column in vars(runs).values()), len(runs.lane))


def ended_runs(
    lane: IntArray,
    joined: BoolArray,
    time_ns: IntArray,
    values: Sequence[IntArray | BoolArray],
    *,
    least_rows: int,
    open_runs: "Runs",
    over: "Runs",
) -> int:
    """Write into `over`, which has room for a run per packet, what `RunFinder.add` returns.

    Args:
        lane: as the other columns, see `RunFinder.add`.
        joined: as there.
        time_ns: as there.
        values: as there.
        least_rows: see `RunFinder`.
        open_runs: a row for every lane; without rows where no run may go on.
        over: written to.

    Returns: how many runs were written.
    """
    columns = (
        np.ascontiguousarray(lane, dtype=np.int64),
        np.ascontiguousarray(joined, dtype=np.bool_),
        np.ascontiguousarray(time_ns, dtype=np.int64),
        *(np.ascontiguousarray(column, dtype=np.int64) for column in values),
    )
    if any(column.shape != (len(lane),) for column in columns) or len(values) > MOST_VALUES:
        raise ValueError(f"columns must be of one length, and {MOST_VALUES} values at most")
    addresses = [column.ctypes.data for column in columns]
    packets = _Packets(*addresses[:3], len(values), tuple(addresses[3:]))
    ended: int = native.load().ca_runs_add(
        ctypes.byref(packets),
        len(lane),
        least_rows,
        ctypes.byref(_Runs.of(open_runs)),
        ctypes.byref(_Runs.of(over)),
    )
    return ended
