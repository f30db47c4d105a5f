"""Queues without a capture, given by the packets that passed them."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from conversation import packets

from twoway.contract.network import Queue
from twoway.measure.queues import Passage


def passage_of(
    entered_ns: Sequence[int],
    left_ns: Sequence[int],
    payload_bytes: Sequence[int] | None = None,
    frame_bytes: Sequence[int] | None = None,
) -> Passage:
    """Make packets that passed a queue; by default data of 1 byte in frames of 1 byte."""
    ones = [1] * len(entered_ns)
    entering = packets(
        time_ns=entered_ns,
        payload_bytes=payload_bytes if payload_bytes is not None else ones,
        frame_bytes=frame_bytes if frame_bytes is not None else ones,
    )
    left = np.array(left_ns, dtype=np.int64)
    return Passage(entering, left, entering.payload_bytes > 0)


def queue_of(*, leaves_at_start: bool = False, **settings: int) -> Queue:
    """Make a queue whose link by default sends a byte per microsecond."""
    values: dict[str, Any] = {
        "rate_bit": 8_000_000,
        "limit_packets": 10,
        "overhead_bytes": 0,
        "cell_bytes": 0,
        "cell_overhead_bytes": 0,
        "delay_ns": 0,
        **settings,
    }
    return Queue(
        direction="forward",
        interface="r1-eth1",
        taps_in=("r1-eth0",),
        reallocations=None,
        leaves_at_start=leaves_at_start,
        **values,
    )
