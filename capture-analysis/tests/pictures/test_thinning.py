"""Thinned traces look the same: each point that a picture's pixels can show is kept."""

import numpy as np
import pytest
from capture_analysis.pictures.figure import Line
from capture_analysis.pictures.thinning import SMALL, thinned

COLUMNS, ROWS = 100, 50
X = np.arange(100_000.0)
Y = np.random.default_rng(1).normal(size=len(X))


def test_few_points_are_kept() -> None:
    """A small trace stays unchanged."""
    line = Line("some", X[:SMALL], Y[:SMALL])
    assert thinned(line, COLUMNS, ROWS) is line


def test_thinned_line_keeps_extremes_and_ends() -> None:
    """Each pixel column keeps a line's lowest and highest point, and the trace its ends."""
    found = thinned(Line("line", X, Y, "steps"), COLUMNS, ROWS)
    assert len(found.x) <= 4 * COLUMNS
    assert (found.x[0], found.x[-1]) == (X[0], X[-1])
    column = (X / X[-1] * (COLUMNS - 1)).astype(int)
    kept = (found.x / X[-1] * (COLUMNS - 1)).astype(int)
    for n in range(COLUMNS):
        mine = Y[column == n]
        assert (found.y[kept == n].min(), found.y[kept == n].max()) == (mine.min(), mine.max())


def test_spans_of_a_column_become_one() -> None:
    """Spans in one column become one, from the lowest start to the highest end."""
    found = thinned(Line("spans", X, Y, "spans", top=Y + 1), COLUMNS, ROWS)
    assert len(found.x) == COLUMNS
    assert (found.y.min(), found.highest().max()) == (Y.min(), (Y + 1).max())


@pytest.mark.parametrize("log", [False, True])
def test_one_point_remains_per_dot(log: bool) -> None:
    """One point remains of those in a dot, with its exact values."""
    y = np.exp(Y)
    found = thinned(Line("points", X, y, "points"), COLUMNS, ROWS, log_y=log)
    assert len(found.x) <= COLUMNS * ROWS
    assert np.isin(found.x, X).all()
    assert found.y.tolist() == y[found.x.astype(int)].tolist()
    assert found.y.max() == y.max() or log
