"""Rows of packets that wait for their partners, and their selection."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from capture_analysis.columns import BoolArray, IntArray

Rows = NDArray[np.void]

# What is kept of a packet until its partner is found. `time_ns` is on the first capture's clock,
# `order` counts the capture's packets.
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


def take(rows: Rows, which: IntArray) -> Rows:
    """Some rows, by number; several times as fast as indexing records."""
    words = rows.view(np.int64).reshape(-1, _WORDS)
    return words.take(which, axis=0).view(rows.dtype).reshape(-1)


def where(rows: Rows, which: BoolArray) -> Rows:
    """Some rows, by mask; the same rows if it is all of them."""
    chosen = np.flatnonzero(which)
    return rows if len(chosen) == len(rows) else take(rows, chosen)


def joined(parts: Sequence[Rows]) -> Rows:
    """Rows of several parts, one part after the other; several times as fast as of records."""
    words = np.concatenate([part.view(np.int64).reshape(-1, _WORDS) for part in parts])
    return words.view(parts[0].dtype).reshape(-1)
