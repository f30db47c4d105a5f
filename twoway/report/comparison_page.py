"""comparison.html: what differs between runs, and their pictures on top of each other."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from capture_analysis.pictures.figure import Figure

from twoway.contract.comparison import Comparison
from twoway.contract.metrics import METRICS, Metrics
from twoway.contract.writing import make_folder
from twoway.measure.analysis import Analysis
from twoway.report import templated
from twoway.report.figures import all_figures

# Pictures of which a line of each run fits on one: by id, those of a report.
_OVERLAID = ("queues", "goodput", "cwnd", "rtt")
_MOST_PICTURES = 24


def write_page(document: Comparison, folders: Sequence[Path], path: Path) -> None:
    """Write the page of a comparison, whole or not at all."""
    drawn = [
        {f.id: f for f in all_figures(Analysis(folder), Metrics.read(folder / METRICS))}
        for folder in folders
    ]
    overlaid = [picture for kind in _OVERLAID for picture in _overlay(kind, drawn)]
    make_folder(path.parent)
    templated.write(
        path,
        "comparison.html.j2",
        overlaid[:_MOST_PICTURES],
        document=document,
        left_out=len(overlaid[_MOST_PICTURES:]),
    )


def _overlay(kind: str, runs: Sequence[dict[str, Figure]]) -> Iterator[Figure]:
    """Draw each line of a picture that all runs have, once for each run."""
    figures = [run[kind] for run in runs if kind in run]
    if len(figures) < len(runs):
        return
    lines = [{line.name: line for line in f.lines if line.style != "dashed"} for f in figures]
    for name in lines[0]:
        same = [of.get(name) for of in lines]
        if all(line is not None and len(line.x) for line in same):
            yield replace(
                figures[0],
                id=f"{kind}-{name}".replace(" ", "-").replace(":", ""),
                title=f"{figures[0].title}: {name}",
                lines=[
                    replace(line, name=str(number), colour=number)
                    for number, line in enumerate(same)
                    if line is not None
                ],
            )
