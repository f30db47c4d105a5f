"""Embed figures in a page that zooms down to the packet.

The page holds every point, packed. Its script (templates/interactive.js) draws no more than the
visible part of a trace can show, a few thousand points, and draws again at each zoom.
"""

import importlib.util
import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from capture_analysis.errors import AnalysisError
from capture_analysis.pictures.figure import Figure, Line
from capture_analysis.pictures.packed_columns import DIVISORS, PackedColumns, compressed
from capture_analysis.pictures.palette import COLOURS

_PLOTLY_STYLE: dict[str, dict[str, Any]] = {
    "steps": {"mode": "lines", "line": {"shape": "hv", "width": 1.2}},
    "line": {"mode": "lines", "line": {"width": 1.2}},
    "marked": {"mode": "lines+markers", "line": {"width": 1.2}, "marker": {"size": 5}},
    "dashed": {"mode": "lines", "line": {"dash": "dash", "width": 1.2}},
    "spans": {"mode": "lines", "line": {"width": 1.6}},
    "points": {"mode": "markers", "marker": {"size": 4}},
    "crosses": {"mode": "markers", "marker": {"symbol": "x-thin-open", "size": 7}},
    "letters": {"mode": "text", "textfont": {"size": 11}, "textposition": "top center"},
}
# Widths of colour 0, enough to be seen behind the traces that are drawn over it.
_WIDE = {"steps": 2.6, "line": 2.6, "spans": 4}


def embedded(figures: Sequence[Figure]) -> dict[str, str]:
    """Return a template's texts: `plots`, `columns`, `plotly`."""
    columns = PackedColumns()
    plots = {figure.id: _plot(figure, columns) for figure in figures}
    described = json.dumps({"columns": columns.table, "plots": plots}, allow_nan=False)
    return {
        "plots": described.replace("<", "\\u003c"),
        "columns": columns.text(),
        "plotly": packed_plotly(),
    }


def _plot(figure: Figure, columns: PackedColumns) -> dict[str, Any]:
    traces = [_trace(line, columns) for line in figure.lines]
    bars = [trace for trace in traces if trace["style"] == "bars"]
    for trace in bars:
        trace["look"]["width"] = 0.8 / len(bars)  # plotly lets a lone bar fill the plot
    return {
        "traces": traces,
        "layout": _layout(figure),
        "view": figure.view,
    }


def _layout(figure: Figure) -> dict[str, Any]:
    axes = {
        "xaxis": (figure.x_label, figure.log_x),
        "yaxis": (figure.y_label, figure.log_y),
    }
    return {
        "margin": {"l": 52, "r": 8, "t": 30, "b": 40},
        "legend": {"orientation": "h", "yref": "container", "y": 0, "yanchor": "bottom"},
        "hovermode": "closest",
        "barmode": "group",
        **{
            name: {
                "title": {"text": label},
                "type": "log" if log else "linear",
                "zeroline": False,
                "automargin": True,
                # Prefixes, plotly's default, would multiply the unit of the axis by another.
                "exponentformat": "power" if log else "none",
                "separatethousands": not log,
            }
            for name, (label, log) in axes.items()
        },
    }


def _trace(line: Line, columns: PackedColumns) -> dict[str, Any]:
    """Describe a trace: plotly's attributes, and its columns' numbers."""
    order = np.argsort(line.x, kind="stable")  # the script searches x by bisection
    used = {"x": line.x, "y": line.y} | ({} if line.top is None else {"top": line.top})
    numbers = {name: columns.add(values[order]) for name, values in used.items()}
    x, y = (_shown(columns.table[numbers[axis]][2]) for axis in ("x", "y"))
    hover = f"%{{x:{x}}}<br>%{{y:{y}}}"
    return {
        "style": line.style,
        "letter": line.letter,
        "look": {"name": line.name, "hovertemplate": hover, **_look(line)},
        **numbers,
    }


def _look(line: Line) -> dict[str, Any]:
    colour = COLOURS[line.colour % len(COLOURS)]
    if line.style == "bars":
        return {"type": "bar", "marker": {"color": colour}}
    look = json.loads(json.dumps(_PLOTLY_STYLE[line.style]))
    if line.style == "letters":
        look["showlegend"] = False  # a legend would show "Aa"; the caption says what they are
    for part in ("line", "marker", "textfont"):
        if part in look:
            look[part]["color"] = colour
    if line.style in _WIDE and line.colour == 0:
        look["line"]["width"] = _WIDE[line.style]
    return {"type": "scatter", **look}


def _shown(divisor: int) -> str:
    """Return the d3 format that shows every digit of a column."""
    return f",.{3 * DIVISORS.index(divisor)}~f" if divisor else ".6~g"


@cache
def packed_plotly() -> str:
    """Pack plotly's script, which takes 0.2 s; without importing plotly, which takes longer."""
    spec = importlib.util.find_spec("plotly")
    if spec is None or spec.origin is None:
        raise AnalysisError("plotly is not installed")
    return compressed((Path(spec.origin).parent / "package_data/plotly.min.js").read_bytes())
