"""Draw figures as files, for papers and slides."""

import io
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.style
import numpy as np
from cycler import cycler
from matplotlib.figure import Figure as Canvas
from matplotlib.font_manager import FontProperties

from capture_analysis.pictures.figure import COLOURS, Figure, Line
from capture_analysis.pictures.thinning import SMALL, thin_line

_DPI = 160
# Points up to which each is drawn hollow, as on a page.
_FEW = 100
# The names of an axis fit side by side if they have at most this number of letters together.
_NAMES_IN_A_ROW = 80
# A style of matplotlib: its name, its file or its settings.
Style = str | dict[str, Any]
# Text stays text in an SVG, and equal figures give equal files.
STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "twoway",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
}
# The look of a figure, which a style of matplotlib may replace. A PDF embeds its fonts as TrueType,
# as publishers want it.
_LOOK = STYLE | {
    "pdf.fonttype": 42,
    "ps.fonttype": 42,
    "figure.figsize": (7, 3.6),
    "axes.prop_cycle": cycler(color=COLOURS),
    "lines.linewidth": 0.8,
    "lines.markersize": 4,
    "legend.fontsize": 7,
    "legend.frameon": False,
    "image.cmap": "cividis",
}
_METADATA = {
    ".pdf": ("Subject", "CreationDate"),
    ".svg": ("Description", "Date"),
    ".png": ("Description", "Software"),
}
# Space of a legend's entry beside its letters, and a letter's width, both in sizes of the letters.
_ENTRY, _LETTER = 5, 0.55


def save_all(
    figures: list[Figure],
    folder: Path,
    conditions: str = "",
    style: Sequence[Style] = (),
    endings: Sequence[str] = ("png", "svg"),
) -> list[Path]:
    """Write each figure as ID.png and ID.svg, or with other endings; return the files.

    Args:
        figures: the figures to draw.
        folder: the folder, made if missing.
        conditions: conditions of the measurement, printed at each foot.
        style: styles of matplotlib, by name, file or settings; with one, title and foot are left to
            the paper.
        endings: png, svg, pdf.
    """
    folder.mkdir(exist_ok=True)
    paths = []
    for figure in figures:
        every = [folder / f"{figure.id}.{ending}" for ending in endings]
        save(figure, *every, conditions=conditions, style=style)
        paths += every
    return paths


class Drawing(Canvas):
    """A figure of matplotlib that a notebook shows as SVG."""

    def _repr_svg_(self) -> str:
        with mpl.rc_context(STYLE):
            file = io.StringIO()
            self.savefig(file, format="svg", metadata={"Date": None})
        return file.getvalue()


def draw(figure: Figure, conditions: str = "", style: Sequence[Style] = ()) -> Drawing:
    """Draw a figure, with a line of small print at its foot; without its title in a style."""
    with mpl.style.context([_LOOK, *style]):
        canvas = Drawing(layout="constrained")
        axes = canvas.subplots()
        lines = [_in_view(line, figure) for line in figure.lines]
        for line in lines:
            _draw(axes, _drawable(line, figure))
        if not style:
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
        if figure.y_names:
            axes.set_yticks(range(len(figure.y_names)), figure.y_names)
        if figure.view:
            axes.set_xlim(*figure.view)
            axes.set_ylim(*_heights(lines))
        _add_legend(canvas, axes, always=not style)
        canvas.supxlabel(conditions, fontsize=5, color="0.4", x=0.01, ha="left")
    return canvas


def save(figure: Figure, *paths: Path, conditions: str = "", style: Sequence[Style] = ()) -> None:
    """Write a figure to files, each in the format of its ending, with its caption inside."""
    canvas = draw(figure, conditions, style)
    with mpl.style.context([_LOOK, *style]):
        layout = canvas.get_layout_engine()
        if layout is not None:
            layout.execute(canvas)  # once for all files: it takes a third of the time of a file
            canvas.set_layout_engine("none")
        for path in paths:
            # The date is left out: equal figures are equal files.
            about, date = _METADATA.get(path.suffix, _METADATA[".png"])
            metadata = {"Title": figure.title, about: f"{figure.caption} {conditions}", date: None}
            canvas.savefig(path, dpi=_DPI, metadata=metadata)


def _add_legend(canvas: Canvas, axes: "mpl.axes.Axes", *, always: bool) -> None:
    """Name the lines, even a single one if `always`; traces of one name are parts of one line.

    The legend is above the title: on the axes it would hide lines, below them the conditions.
    """
    named: dict[str, Any] = {}
    for handle, name in zip(*axes.get_legend_handles_labels(), strict=True):
        named.setdefault(name, handle)
    if not named or (len(named) == 1 and not always):
        return
    font = FontProperties(size=mpl.rcParams["legend.fontsize"])
    room = 72 * canvas.get_figwidth() / font.get_size_in_points()
    columns = int(room / (_ENTRY + _LETTER * max(map(len, named))))
    columns = max(min(columns, len(named)), 1)
    canvas.legend([*named.values()], [*named], loc="outside upper center", ncols=columns)


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
    columns, rows = (round(2 * inches * _DPI) for inches in mpl.rcParams["figure.figsize"])
    return thin_line(line, columns, rows, log_x=figure.log_x, log_y=figure.log_y)


def _draw(axes: "mpl.axes.Axes", line: Line) -> None:
    # Many points are an image inside an SVG: as shapes they would take a viewer seconds.
    colours = mpl.rcParams["axes.prop_cycle"].by_key()["color"]
    size = mpl.rcParams["lines.markersize"]
    look: dict[str, Any] = {
        "color": colours[line.colour % len(colours)],
        "label": line.name,
        "rasterized": len(line.x) > SMALL,
    }
    # Colour 0 is drawn first, so that it is seen around the trace drawn over it.
    width = mpl.rcParams["lines.linewidth"] * (1 if line.colour else 2)
    match line.style:
        case "steps":
            axes.step(line.x, line.y, where="post", linewidth=width, **look)
        case "marked":
            axes.plot(line.x, line.y, ".-", linewidth=width, **look)
        case "points":
            # Few are hollow: a bar behind them is seen, and so are points of equal values.
            few = {"marker": "o", "markerfacecolor": "none", "markeredgewidth": 0.5}
            look |= few if len(line.x) <= _FEW else {"marker": "."}
            axes.plot(line.x, line.y, linestyle="", markersize=0.6 * size, **look)
        case "crosses":
            axes.plot(line.x, line.y, "x", **look)
        case "letters":
            marker = f"${line.letter}$"
            axes.plot(line.x, line.y, linestyle="", marker=marker, markersize=1.25 * size, **look)
        case "bars":
            axes.bar(line.x, line.y, alpha=0.6, **look)
        case "spans":
            axes.vlines(line.x, line.y, line.highest(), linewidth=1.25 * width, **look)
        case "dashed":
            axes.plot(line.x, line.y, "--", linewidth=1.1 * mpl.rcParams["lines.linewidth"], **look)
        case "cells":
            _cells(axes, line)
        case _:
            axes.plot(line.x, line.y, linewidth=width, **look)


def _cells(axes: "mpl.axes.Axes", line: Line) -> None:
    """Draw a value for each x and y, in colour and digits."""
    x, y = (np.rint(each).astype(int) for each in (line.x, line.y))
    grid = np.full((y.max(initial=0) + 1, x.max(initial=0) + 1), np.nan)
    grid[y, x] = line.highest()
    columns, rows = np.arange(grid.shape[1]), np.arange(grid.shape[0])
    mesh = axes.pcolormesh(columns, rows, grid, edgecolors="white", linewidth=0.5)
    middle = (np.nanmin(grid) + np.nanmax(grid)) / 2
    for (row, column), value in np.ndenumerate(grid):
        if np.isfinite(value):
            ink = "white" if value < middle else "black"
            axes.text(column, row, f"{value:.3g}", ha="center", va="center", color=ink)
    axes.figure.colorbar(mesh, ax=axes, label=line.name)
