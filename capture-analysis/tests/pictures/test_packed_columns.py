"""Columns packed into a page are restored exactly."""

import base64
import gzip

import numpy as np
import packed_page
import pytest
from capture_analysis.pictures.packed_columns import PackedColumns


def round_trip(*columns: list[float]) -> list[list[float]]:
    """Pack a column; return it as the page unpacks it."""
    packed = PackedColumns()
    numbers = [packed.add(np.array(column, dtype=np.float64)) for column in columns]
    content = gzip.decompress(base64.b64decode(packed.text()))
    return [packed_page.unpacked(content, *packed.table[n]).tolist() for n in numbers]


@pytest.mark.parametrize(
    "column",
    [
        [],
        [0.0],
        [0, 1, -1, 63, 64, -64, -65, 8191, 8192, 1 << 40, -(1 << 50), (1 << 51) - 1],
        [0.000000001, 0.000000002, 20.123456789, 86_400.000000001, 2_000_000.123456789],
        [1.5, -0.25, 1e-6],
        [0.1 + 0.2, 1 / 3, 1e300, -1e-300],
        [1.0, float("inf")],
    ],
)
def test_nothing_is_lost(column: list[float]) -> None:
    """Every number is restored to the same float64."""
    assert round_trip([7.0], column, [8.0]) == [[7.0], column, [8.0]]


def test_a_long_column_is_packed_in_blocks() -> None:
    """A column of more numbers than are packed at a time is restored, too."""
    column = (np.arange(20_000.0) ** 2 % 1009).tolist()
    assert round_trip(column) == [column]


def test_gaps_stay() -> None:
    """NaN stays NaN."""
    assert np.isnan(round_trip([1.0, np.nan])[0]).tolist() == [False, True]


def test_nanoseconds_are_counted() -> None:
    """Times in seconds are kept as whole nanoseconds, in one byte for steps below 64."""
    packed = PackedColumns()
    packed.add(np.arange(0, 1000, 50) / 1e9)
    packed.add(np.array([1.0]))
    assert packed.table == [(0, 20, 1_000_000_000), (20, 1, 1)]


def test_equal_columns_are_kept_once() -> None:
    """A column equal to an earlier one takes no space."""
    packed = PackedColumns()
    first = packed.add(np.arange(5.0))
    assert packed.add(np.arange(5.0)) == first
    assert len(packed.table) == 1
