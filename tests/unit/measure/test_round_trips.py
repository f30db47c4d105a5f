"""Round trips, and segments that a receiver rejects for an old time stamp."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from capture_analysis.columns import FLAG_ACK, FLAG_SYN, Packets, empty_columns
from conversation import packets

from twoway.measure.paws_rejections import rejected_as_old
from twoway.measure.round_trips import round_trips, unwrap_numbers


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
    assert unwrap_numbers(numbers, origin).tolist() == [0, 15, 0, 50, -1]


# Segments that a receiver rejects for an old time stamp, one by one.

# The receiver has acknowledged up to 100, and its last time stamp is 50.
BEFORE = {"time_ns": 0, "seq": 90, "payload_bytes": 10, "ts_value": 50}
ANSWERS = packets(time_ns=[1], ack=[100])


def marks(*rows: dict[str, int], sent: Packets = ANSWERS) -> list[bool]:
    """Mark segments that arrive at 10 ns and each ns after it, behind the one before."""
    given = [BEFORE, *({"time_ns": 10 + n, **row} for n, row in enumerate(rows))]
    columns: dict[str, Any] = {
        name: [row.get(name, 0) for row in given]
        for name in ("time_ns", "seq", "payload_bytes", "ts_value")
    }
    return [bool(mark) for mark in rejected_as_old(packets(**columns), sent)[1:]]


@pytest.mark.parametrize(("stamp", "old"), [(51, False), (50, False), (49, False), (48, True)])
def test_a_stamp_may_be_one_tick_older(stamp: int, old: bool) -> None:
    """A segment with a stamp two ticks older than the last one is rejected, with one tick not."""
    assert marks({"seq": 100, "payload_bytes": 10, "ts_value": stamp}) == [old]


def test_stamps_wrap() -> None:
    """A stamp of less than 2^31 ticks ahead is newer, also across the wrap of 32 bits."""
    ahead = {"seq": 100, "payload_bytes": 10, "ts_value": 50 + (1 << 31) - 1}
    assert marks(ahead) == [False]
    assert marks({**ahead, "ts_value": 50 + (1 << 31) + 1}) == [True]
    assert marks(ahead, {**ahead, "ts_value": 0}) == [False, False]


def test_only_a_segment_at_the_last_ack_sets_the_stamp() -> None:
    """A segment after a hole, or one that ends before the last ACK, leaves the stamp as it is."""
    old = {"seq": 120, "payload_bytes": 10, "ts_value": 50}
    for seq, size, sets in ((101, 10, False), (100, 10, True), (95, 5, True), (80, 19, False)):
        newer = {"seq": seq, "payload_bytes": size, "ts_value": 60}
        assert marks(newer, old) == [False, sets]


def test_the_last_ack_is_the_last_before_the_segment() -> None:
    """An ACK that leaves as a segment arrives, or later, does not count for it."""
    old = {"seq": 120, "payload_bytes": 10, "ts_value": 50}
    newer = {"seq": 105, "payload_bytes": 10, "ts_value": 60}
    for at_ns, sets in ((9, True), (10, False)):
        sent = packets(time_ns=[1, at_ns], ack=[100, 110])
        assert marks(newer, old, sent=sent) == [False, sets]


def test_what_has_no_data_or_no_stamps_is_not_rejected() -> None:
    """A pure ACK with an old stamp is no rejected segment, and nothing is without time stamps."""
    assert marks({"seq": 100, "payload_bytes": 0, "ts_value": 1}) == [False]
    rows = packets(time_ns=[1, 2], seq=[90, 100], payload_bytes=[10, 10])
    assert rejected_as_old(rows, ANSWERS).tolist() == [False, False]
