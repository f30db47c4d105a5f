"""Figures as PNG and SVG files, for papers and slides."""

from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure as Canvas

from capture_analysis.figure import Figure, Line
from capture_analysis.palette import COLOURS

# SVG text stays text, and equal figures are equal files.
_STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "twoway",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
}


def save_all(figures: list[Figure], folder: Path) -> None:
    """Write each figure as <id>.png and <id>.svg."""
    folder.mkdir(exist_ok=True)
    for figure in figures:
        with mpl.rc_context(_STYLE):
            canvas = Canvas(figsize=(7, 3.6), layout="constrained")
            axes = canvas.subplots()
            for line in figure.lines:
                _draw(axes, line)
            axes.set_title(figure.title)
            axes.set_xlabel(figure.x_label)
            axes.set_ylabel(figure.y_label)
            if figure.log_y:
                axes.set_yscale("log")
            if figure.lines:
                axes.legend(frameon=False, fontsize=7, ncols=2)
            canvas.savefig(folder / f"{figure.id}.png", dpi=160)
            canvas.savefig(folder / f"{figure.id}.svg", metadata={"Date": None})


def _draw(axes: "mpl.axes.Axes", line: Line) -> None:
    colour = COLOURS[line.colour % len(COLOURS)]
    match line.style:
        case "steps":
            axes.step(line.x, line.y, where="post", color=colour, linewidth=0.8, label=line.name)
        case "points":
            axes.plot(line.x, line.y, ".", color=colour, markersize=2.5, label=line.name)
        case "crosses":
            axes.plot(line.x, line.y, "x", color=colour, markersize=4, label=line.name)
        case "bars":
            axes.bar(line.x, line.y, color=colour, alpha=0.6, label=line.name)
        case "dashed":
            axes.plot(line.x, line.y, "--", color=colour, linewidth=0.9, label=line.name)
        case _:
            axes.plot(line.x, line.y, color=colour, linewidth=0.8, label=line.name)
