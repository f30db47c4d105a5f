"""Which ACKs are compressed, at the edges."""

from types import SimpleNamespace
from typing import Any

import numpy as np

from twoway.measure.metrics.acks import spacing


def test_compressed_is_below_three_quarters() -> None:
    """Of gaps of 100 ns those of 74 and 0 on arrival are compressed; 75, 100 and -1 are not."""
    arrived_ns = np.cumsum([1000, 74, 75, 0, 100, -1])
    acks = SimpleNamespace(sent_ns=np.arange(6) * 100, arrived_ns=arrived_ns)
    view: Any = SimpleNamespace(acks=acks)
    analysis: Any = None
    assert spacing.measure(analysis, view) == (0.74, 2 / 5)
