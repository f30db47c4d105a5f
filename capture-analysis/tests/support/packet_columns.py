"""Packets as columns without a capture, for tests of functions on them."""

from collections.abc import Sequence
from dataclasses import fields

import numpy as np
from capture_analysis.columns import Packets


def packets(**columns: Sequence[int]) -> Packets:
    """Make packets from at least one column; other columns are zero."""
    length = len(next(iter(columns.values())))
    return Packets(
        *(np.array(columns.get(f.name, [0] * length), dtype=np.int64) for f in fields(Packets))
    )
