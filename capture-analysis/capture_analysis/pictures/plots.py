"""Draw figures as PNG and SVG files, for papers and slides."""

import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure as Canvas

from capture_analysis.pictures.figure import Figure, Line
from capture_analysis.pictures.palette import COLOURS
from capture_analysis.pictures.thinning import SMALL, thinned

_INCHES = (7, 3.6)
_DPI = 160
# The names of an axis fit side by side if they have at most this number of letters together.
_NAMES_IN_A_ROW = 80
# Text stays text in an SVG, and equal figures give equal files.
STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "twoway",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
}


def save_all(figures: list[Figure], folder: Path, conditions: str = "") -> list[Path]:
    """Write each figure as ID.png and ID.svg; return the files.

    Args:
        figures: the figures to draw.
        folder: the folder, made if missing.
        conditions: conditions of the measurement, printed at each foot.
    """
    folder.mkdir(exist_ok=True)
    paths = []
    for figure in figures:
        both = [folder / f"{figure.id}.{ending}" for ending in ("png", "svg")]
        save(figure, *both, conditions=conditions)
        paths += both
    return paths


class Drawing(Canvas):
    """A figure of matplotlib that a notebook shows as SVG."""

    def _repr_svg_(self) -> str:
        with mpl.rc_context(STYLE):
            file = io.StringIO()
            self.savefig(file, format="svg", metadata={"Date": None})
        return file.getvalue()


def draw(figure: Figure, conditions: str = "") -> Drawing:
    """Draw a figure, with a line of small print at its foot."""
    with mpl.rc_context(STYLE):
        canvas = Drawing(figsize=_INCHES, layout="constrained")
        axes = canvas.subplots()
        lines = [_in_view(line, figure) for line in figure.lines]
        for line in lines:
            _draw(axes, _drawable(line, figure))
        axes.set_title(figure.title)
        axes.set_xlabel(figure.x_label)
        axes.set_ylabel(figure.y_label)
        if figure.log_x:
            axes.set_xscale("log")
        if ticks := figure.x_ticks:
            axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
            axes.set_xticks([], minor=True)
        if figure.log_y:
            axes.set_yscale("log")
        if figure.x_names:
            many = len("".join(figure.x_names)) > _NAMES_IN_A_ROW
            slant: dict[str, Any] = (
                {"rotation": 30, "ha": "right", "rotation_mode": "anchor"} if many else {}
            )
            axes.set_xticks(range(len(figure.x_names)), figure.x_names, **slant)
        if figure.view:
            axes.set_xlim(*figure.view)
            axes.set_ylim(*_heights(lines))
        if figure.lines:
            # The legend is above the title: on the axes it would hide lines, below them the
            # conditions.
            canvas.legend(loc="outside upper center", frameon=False, fontsize=7, ncols=4)
        canvas.supxlabel(conditions, fontsize=5, color="0.4", x=0.01, ha="left")
    return canvas


def save(figure: Figure, *paths: Path, conditions: str = "") -> None:
    """Write a figure to files, each in the format of its ending, with its caption inside."""
    canvas = draw(figure, conditions)
    with mpl.rc_context(STYLE):
        layout = canvas.get_layout_engine()
        if layout is not None:
            layout.execute(canvas)  # once for all files: it takes a third of the time of a file
            canvas.set_layout_engine("none")
        for path in paths:
            metadata = {"Title": figure.title, "Description": f"{figure.caption} {conditions}"}
            undated = {"Date": None} if path.suffix == ".svg" else {}
            canvas.savefig(path, dpi=_DPI, metadata=metadata | undated)


def _in_view(line: Line, figure: Figure) -> Line:
    """Select the points in a figure's view, for lines also the next ones."""
    if figure.view is None:
        return line
    first, last = np.searchsorted(line.x, figure.view)
    beyond = 1 if line.style in ("steps", "line", "dashed") else 0
    part = slice(max(first - beyond, 0), last + beyond)
    top = None if line.top is None else line.top[part]
    return replace(line, x=line.x[part], y=line.y[part], top=top)


def _heights(lines: list[Line]) -> tuple[float, float]:
    """Choose the range of y, by the spans if there are any."""
    spans = [line for line in lines if line.style == "spans" and len(line.x)] or lines
    ends = np.concatenate([np.zeros(0), *(v for line in spans for v in (line.y, line.highest()))])
    ends = ends[np.isfinite(ends)]
    low, high = (float(ends.min()), float(ends.max())) if len(ends) else (0.0, 1.0)
    margin = 0.03 * (high - low) or 1.0
    return low - margin, high + margin


def _drawable(line: Line, figure: Figure) -> Line:
    """Thin a line to two points for each dot that paper can show."""
    columns, rows = (round(2 * inches * _DPI) for inches in _INCHES)
    return thinned(line, columns, rows, log_x=figure.log_x, log_y=figure.log_y)


def _draw(axes: "mpl.axes.Axes", line: Line) -> None:
    # Many points are an image inside an SVG: as shapes they would take a viewer seconds.
    look: dict[str, Any] = {
        "color": COLOURS[line.colour % len(COLOURS)],
        "label": line.name,
        "rasterized": len(line.x) > SMALL,
    }
    # Colour 0 is drawn first, so that it is seen around the trace drawn over it.
    width = 0.8 if line.colour else 1.6
    match line.style:
        case "steps":
            axes.step(line.x, line.y, where="post", linewidth=width, **look)
        case "marked":
            axes.plot(line.x, line.y, ".-", markersize=4, linewidth=width, **look)
        case "points":
            axes.plot(line.x, line.y, ".", markersize=2.5, **look)
        case "crosses":
            axes.plot(line.x, line.y, "x", markersize=4, **look)
        case "letters":
            marker = f"${line.letter}$"
            axes.plot(line.x, line.y, linestyle="", marker=marker, markersize=5, **look)
        case "bars":
            axes.bar(line.x, line.y, alpha=0.6, **look)
        case "spans":
            axes.vlines(line.x, line.y, line.highest(), linewidth=1.25 * width, **look)
        case "dashed":
            axes.plot(line.x, line.y, "--", linewidth=0.9, **look)
        case _:
            axes.plot(line.x, line.y, linewidth=width, **look)
