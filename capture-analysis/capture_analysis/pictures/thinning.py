"""Thin a trace to the points that a picture of limited size can show.

The page's script (templates/interactive.js) thins traces by the same rules at each zoom.
"""

import numpy as np

from capture_analysis.columns import IntArray
from capture_analysis.pictures.figure import FloatArray, Line

# Traces up to this number of points are not thinned.
SMALL = 4000


def thin_line(
    line: Line,
    columns: int,
    rows: int,
    *,
    log_x: bool = False,
    log_y: bool = False,
    small: int = SMALL,
) -> Line:
    """Thin a trace for a picture of `columns` by `rows` dots.

    Lines keep the first, lowest, highest and last point of each column of dots. Spans are united in
    each column. If several points fall into one dot, the first is kept. Bars are not thinned.

    Args:
        line: x must not descend, unless its style is points, crosses or letters.
        columns: width of the picture in dots.
        rows: height of the picture in dots.
        log_x: True if the axis of x is logarithmic.
        log_y: True if the axis of y is logarithmic.
        small: traces with at most this number of points stay unchanged.
    """
    if len(line.x) <= small or line.style == "bars":
        return line
    column = _dot(line.x, columns, log=log_x)
    if line.style in ("points", "crosses", "letters"):
        dot = column * rows + _dot(line.y, rows, log=log_y)
        return _take_points(line, np.sort(np.unique(dot, return_index=True)[1]))
    starts = np.flatnonzero(np.diff(column, prepend=-1))
    if line.style == "spans" and line.top is not None:
        low, high = np.minimum.reduceat(line.y, starts), np.maximum.reduceat(line.top, starts)
        return Line(line.name, line.x[starts], low, "spans", line.colour, top=high)
    ends = np.append(starts[1:], len(column)) - 1
    order = np.lexsort((line.y, column))
    return _take_points(line, np.unique(np.concatenate((starts, ends, order[starts], order[ends]))))


def _dot(values: FloatArray, dots: int, *, log: bool) -> IntArray:
    """Find the dot, 0 to dots - 1, of each value; shape (n,)."""
    if log:
        values = np.log(np.maximum(values, np.finfo(float).tiny))
    low, high = values.min(), values.max()
    share = (values - low) / max(high - low, np.finfo(float).tiny)
    return np.asarray(share * (dots - 1)).astype(np.int64)


def _take_points(line: Line, rows: IntArray) -> Line:
    return Line(line.name, line.x[rows], line.y[rows], line.style, line.colour, letter=line.letter)
