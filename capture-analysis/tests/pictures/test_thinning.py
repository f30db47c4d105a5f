"""Columns of a page: thinned traces look the same, and packed columns are restored exactly."""

import base64
import gzip

import numpy as np
import packed_page
import pytest
from capture_analysis.pictures.figure import Line
from capture_analysis.pictures.packed_columns import PackedColumns
from capture_analysis.pictures.thinning import SMALL, thin_line

# Thinned traces look the same: each point that a picture's pixels can show is kept.

COLUMNS, ROWS = 100, 50
X = np.arange(100_000.0)
Y = np.random.default_rng(1).normal(size=len(X))


def test_few_points_are_kept() -> None:
    """A small trace stays unchanged."""
    line = Line("some", X[:SMALL], Y[:SMALL])
    assert thin_line(line, COLUMNS, ROWS) is line


def test_thinned_line_keeps_extremes_and_ends() -> None:
    """Each pixel column keeps a line's lowest and highest point, and the trace its ends."""
    found = thin_line(Line("line", X, Y, "steps"), COLUMNS, ROWS)
    assert len(found.x) <= 4 * COLUMNS
    assert (found.x[0], found.x[-1]) == (X[0], X[-1])
    column = (X / X[-1] * (COLUMNS - 1)).astype(int)
    kept = (found.x / X[-1] * (COLUMNS - 1)).astype(int)
    for n in range(COLUMNS):
        mine = Y[column == n]
        assert (found.y[kept == n].min(), found.y[kept == n].max()) == (mine.min(), mine.max())


def test_spans_of_a_column_become_one() -> None:
    """Spans in one column become one, from the lowest start to the highest end."""
    found = thin_line(Line("spans", X, Y, "spans", top=Y + 1), COLUMNS, ROWS)
    assert len(found.x) == COLUMNS
    assert (found.y.min(), found.highest().max()) == (Y.min(), (Y + 1).max())


@pytest.mark.parametrize("log", [False, True])
def test_one_point_remains_per_dot(log: bool) -> None:
    """One point remains of those in a dot, with its exact values."""
    y = np.exp(Y)
    found = thin_line(Line("points", X, y, "points"), COLUMNS, ROWS, log_y=log)
    assert len(found.x) <= COLUMNS * ROWS
    assert np.isin(found.x, X).all()
    assert found.y.tolist() == y[found.x.astype(int)].tolist()
    assert found.y.max() == y.max() or log


# Columns packed into a page are restored exactly.


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
