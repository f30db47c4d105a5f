"""The numbers behind a run's figures, as CSV files."""

import csv
from collections.abc import Iterable
from pathlib import Path

from capture_analysis.pictures.figure import Figure

from twoway.report.csv_cells import cells


def save_numbers(figures: Iterable[Figure], folder: Path) -> list[Path]:
    """Write each figure's lines as ID.csv, a row for each point; return the files.

    The columns are the line's name, its look, x and y in the units of the axes, and for vertical
    lines (`spans`), such as intervals, their upper end. The numbers are exactly those of the page.
    """
    folder.mkdir(exist_ok=True)
    paths = []
    for figure in figures:
        path = folder / f"{figure.id}.csv"
        with path.open("w", encoding="utf-8", newline="") as file:
            rows = csv.writer(file)
            rows.writerow(cells(["line", "look", figure.x_label, figure.y_label, "to"]))
            for line in figure.lines:
                tops = line.top.tolist() if line.top is not None else [""] * len(line.x)
                rows.writerows(
                    cells((line.name, line.style, *point))
                    for point in zip(line.x.tolist(), line.y.tolist(), tops, strict=True)
                )
        paths.append(path)
    return paths
