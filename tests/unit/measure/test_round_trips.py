"""Round trips: packets that acknowledge nothing, sequence numbers that wrap to 0."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from capture_analysis.columns import FLAG_ACK, FLAG_SYN, empty_columns

from twoway.measure.round_trips import round_trips, unwrapped


@pytest.mark.parametrize("isn", [1000, (1 << 31) + 1000])
def test_a_syn_acknowledges_no_data(isn: int) -> None:
    """The end that accepts a connection has round trips of its own data; a SYN gives none."""
    data = replace(
        empty_columns(2),
        time_ns=np.array([100, 200]),
        seq=np.array([isn, isn + 1000]),
        payload_bytes=np.array([1000, 1000]),
    )
    acks = replace(
        empty_columns(3),
        time_ns=np.array([0, 150, 280]),
        ack=np.array([0, isn + 1000, isn + 2000]),
        flags=np.array([FLAG_SYN, FLAG_ACK, FLAG_ACK]),
    )
    assert round_trips(data, acks).rtt_ns.tolist() == [50, 80]


def test_sequence_numbers_go_on_behind_32_bits() -> None:
    """Sequence numbers continue past 32 bits, even if one steps back before the wrap."""
    origin = (1 << 32) - 10
    numbers: Any = np.array([origin, 5, origin, 40, origin - 1], dtype=np.uint32)
    assert unwrapped(numbers, origin).tolist() == [0, 15, 0, 50, -1]
