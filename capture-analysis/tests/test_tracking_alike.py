"""The trackers in C and in Python agree on any packets; chunks and other flows do not matter."""

from collections.abc import Iterable

import numpy as np
import pytest
from capture_analysis.columns import COLUMN_TYPES, Packets, concatenate
from capture_analysis.tracking import TRACKED_TYPES, Tracked, Tracker
from conversation import AnyTracker, columns, flow_table
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.tracker import PythonTracker

pytestmark = pytest.mark.slow

FLOWS = 3
# Few numbers, so that they coincide: near 0, near the sign bit, and anywhere.
NUMBERS = st.one_of(
    st.integers(0, 12),
    st.integers(2**32 - 8, 2**32 - 1),
    st.integers(2**31 - 4, 2**31 + 4),
    st.integers(0, 2**32 - 1),
)
PACKETS = st.lists(
    st.fixed_dictionaries(
        {
            "time_ns": st.one_of(
                st.integers(0, 3_000_000), st.sampled_from([0, 10**9, 2**63 - 1, -(2**62)])
            ),
            "flow": st.integers(0, FLOWS - 1),
            "half": st.integers(0, 1),
            "seq": NUMBERS,
            "ack": NUMBERS,
            "payload_bytes": st.one_of(st.integers(0, 6), st.sampled_from([1448, 2**32 - 1])),
            "flags": st.sampled_from([16, 16, 16, 24, 17, 2, 18, 4, 20, 1, 0, 511]),
            "window": st.sampled_from([0, 100, 100, 200]),
            "ip_id": st.sampled_from([0, 0, 1, 2]),
            "marks": st.sampled_from([0, 0, 2]),
            "sack_left": st.integers(0, 1),
            "ts_value": st.integers(0, 1),
        }
    ),
    max_size=60,
)


def table(parts: Iterable[Tracked]) -> dict[str, list[int]]:
    """Return all rows of a tracker, which it overwrites, with checked types."""
    rows: dict[str, list[int]] = {name: [] for name in TRACKED_TYPES}
    for part in parts:
        for name, kind in TRACKED_TYPES.items():
            column = getattr(part, name)
            assert column.dtype == kind
            rows[name] += column.tolist()
    return rows


def in_chunks(tracker: AnyTracker, packets: Packets, size: int) -> Iterable[Tracked]:
    """Track a number of packets at a time."""
    for first in range(0, len(packets), size):
        yield tracker.track(packets.where(slice(first, first + size)), flow_table(FLOWS))


@settings(max_examples=300)
@given(PACKETS, st.integers(1, 60))
def test_any_packets(packets: list[dict[str, int]], size: int) -> None:
    """Both trackers agree on any packets, valid or not, in chunks or not."""
    rows = columns(packets)
    python, c = PythonTracker(), Tracker()
    expected = table(in_chunks(python, rows, 60))
    assert table(in_chunks(c, rows, size)) == expected
    assert c.forgotten == python.forgotten


@given(PACKETS, st.integers(0, FLOWS - 1))
def test_any_connection_alone(packets: list[dict[str, int]], flow: int) -> None:
    """A tracker that gets only one of several connections has the same rows for it."""
    rows = columns(packets)
    mine = rows.flow == flow
    whole = table([Tracker().track(rows, flow_table(FLOWS)).where(mine)])
    assert table([Tracker().track(rows.where(mine), flow_table(FLOWS))]) == whole


@pytest.mark.parametrize("seed", range(6))
def test_a_rough_path(seed: int) -> None:
    """Both trackers agree on thousands of packets: lost, reordered, copied, acknowledged."""
    rows = rough_path(seed, 8000)
    python, c = PythonTracker(), Tracker()
    expected = table(in_chunks(python, rows, 8000))
    assert table(in_chunks(c, rows, 777)) == expected
    assert c.forgotten == python.forgotten
    assert len(set(expected["kind"])) == 9  # all kinds but CONTROL


def test_wide_columns_are_taken_too() -> None:
    """Columns widened to int64 (`read_capture`) give the same rows."""
    rows = rough_path(1, 500)
    expected = table([Tracker().track(rows, flow_table(FLOWS))])
    assert table([Tracker().track(rows.widened(), flow_table(FLOWS))]) == expected


def rough_path(seed: int, packets: int) -> Packets:
    """Make connections whose halves send and acknowledge at random around a moving window."""
    random = np.random.default_rng(seed)
    at = np.arange(packets)
    front = at * random.integers(1, 40)
    behind = np.where(random.random(packets) < 0.7, 0, random.integers(-3000, 200, packets))
    payload = random.choice([0, 0, 0, 1, 10, 100], packets)
    chosen = {
        "time_ns": at * 20_000 + random.integers(-50_000, 50_000, packets),
        "flow": random.integers(0, FLOWS, packets),
        "half": random.integers(0, 2, packets),
        "payload_bytes": payload,
        "seq": (2**32 - 30_000 + front + behind) % 2**32,
        "ack": (2**32 - 30_000 + front + random.integers(-900, 0, packets)) // 90 * 90 % 2**32,
        "window": random.choice([0, 50, 50, 50, 50, 60], packets),
        "ip_id": random.choice([0, 7], packets),
        "flags": np.full(packets, 16),
        "marks": random.choice([0, 0, 0, 2], packets),
    }
    rows = columns([{}] * packets)
    rows = Packets(**vars(rows) | {k: v.astype(COLUMN_TYPES[k]) for k, v in chosen.items()})
    repeated = np.sort(np.concatenate((at, at[random.random(packets) < 0.1])))
    return concatenate([rows.where(repeated)])
