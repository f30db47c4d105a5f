"""Embed figures in a page that zooms down to the packet.

The page holds every point, packed. Its script (templates/interactive.js) draws at most a few
thousand points, as many as the visible part of a trace can show, and draws again at each zoom.
"""

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from capture_analysis.pictures.figure import COLOURS, Figure, Line
from capture_analysis.pictures.packed_columns import DIVISORS, PackedColumns

# Widths of lines, px; colour 0 is wide enough to be seen behind the traces drawn over it.
_WIDTH = {"dashed": 1.2, "spans": 1.6}
_WIDE = {"steps": 2.6, "line": 2.6, "spans": 4}
# Share of the distance between two groups of bars that a group fills.
_GROUP = 0.8


def embed_figures(figures: Sequence[Figure]) -> dict[str, str]:
    """Return a template's texts: `plots`, `columns`."""
    columns = PackedColumns()
    plots = {figure.id: _plot(figure, columns) for figure in figures}
    described = json.dumps({"columns": columns.table, "plots": plots}, allow_nan=False)
    return {"plots": described.replace("<", "\\u003c"), "columns": columns.text()}


def _plot(figure: Figure, columns: PackedColumns) -> dict[str, Any]:
    traces = [_trace(line, columns) for line in figure.lines]
    bars = [trace for trace in traces if trace["style"] == "bars"]
    for at, trace in enumerate(bars):
        trace |= {"wide": _GROUP / len(bars), "place": at - (len(bars) - 1) / 2}
    return {
        "traces": traces,
        "x": {
            "label": figure.x_label,
            "log": figure.log_x,
            "names": figure.x_names,
            "ticks": figure.x_ticks,
        },
        "y": {"label": figure.y_label, "log": figure.log_y},
        "view": figure.view,
    }


def _trace(line: Line, columns: PackedColumns) -> dict[str, Any]:
    """Describe a trace: its look, and its columns' numbers."""
    order = np.argsort(line.x, kind="stable")  # the script searches x by bisection
    used = {"x": line.x, "y": line.y} | ({} if line.top is None else {"top": line.top})
    numbers = {name: columns.add(values[order]) for name, values in used.items()}
    width = _WIDTH.get(line.style, 1.2)
    return {
        "name": line.name,
        "style": line.style,
        "letter": line.letter,
        "links": [line.links[n] for n in order] if line.links else [],
        "colour": COLOURS[line.colour % len(COLOURS)],
        "width": width if line.colour else _WIDE.get(line.style, width),
        "digits": [_digits(columns.table[numbers[axis]][2]) for axis in ("x", "y")],
        **numbers,
    }


def _digits(divisor: int) -> int | None:
    """Return the decimals needed for every digit of a column; None if not decimal."""
    return 3 * DIVISORS.index(divisor) if divisor else None
