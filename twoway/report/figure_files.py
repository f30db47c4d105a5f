"""Figures of runs as files for print, with the numbers behind them, and their captions."""

import csv
import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from capture_analysis.errors import AnalysisError
from capture_analysis.pictures.figure import Figure

from twoway.errors import UsageError, in_a_sentence
from twoway.manifest import SEED
from twoway.measure.analysis import Analysis
from twoway.measure.document import compute
from twoway.messages import suggest
from twoway.report.connections import MANY
from twoway.report.figures import all_figures
from twoway.report.paper_text import cells, latex_figure, latex_table, markdown_table
from twoway.report.print_figures import KINDS, drawn_figures, map_axes
from twoway.report.repetitions import group_runs
from twoway.report.results import Experiment
from twoway.report.sweep_answer import answer_of, answer_tables

FIGURES, CAPTIONS = "figures", "figures.tex"
# Fonts with serifs that matplotlib brings, embedded as TrueType; thin lines.
_ARTICLE = {
    "font.family": "STIXGeneral",
    "mathtext.fontset": "stix",
    "font.size": 8,
    "legend.fontsize": 7,
    "axes.linewidth": 0.5,
    "xtick.major.width": 0.5,
    "ytick.major.width": 0.5,
    "lines.linewidth": 0.7,
}
# One column and both columns of a journal, and most of a slide of 10 by 5.63 inches.
_SLIDE = {"font.size": 16, "legend.fontsize": 14, "lines.linewidth": 2, "lines.markersize": 8}
STYLES: dict[str, dict[str, Any]] = {
    "acm": _ARTICLE | {"figure.figsize": (3.33, 2.1)},
    "acm-wide": _ARTICLE | {"figure.figsize": (7.0, 2.6)},
    "ieee": _ARTICLE | {"figure.figsize": (3.5, 2.2)},
    "ieee-wide": _ARTICLE | {"figure.figsize": (7.16, 2.6)},
    "slides": _SLIDE | {"figure.figsize": (9, 4.6)},
}
_ENDINGS = ("png", "svg", "pdf")
# Digits of an identity in a caption.
_SHORT = 12


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


@dataclass(frozen=True)
class Print:
    """Options of written figures.

    Attributes:
        style: a style of ours, a file or a style of matplotlib; "" for a page's look with a title
            and, at the foot, the conditions.
        foot: the text at the foot; None: the conditions.
        numbers: True to write CSV files alone.
        command: the command line, for captions.
    """

    style: str
    foot: str | None
    numbers: bool
    command: str


def run_figures(
    experiment: Experiment, names: Sequence[str], flows: Sequence[str], how: Print
) -> list[Path]:
    """Write the figures of one run's report, or the named ones, of all flows or some, beside it.

    Raises: UsageError for an unknown name; AnalysisError if the run cannot be analysed.
    """
    (run,) = experiment.results
    known = [each.name for each in run.manifest.connections]
    for name in set(flows).difference(known):
        raise UsageError(
            f"--flow: {name:.80}: no such flow{suggest(name, known)}",
            f"there are {', '.join(known[:MANY])}{', ...' * (len(known) > MANY)}",
        )
    kinds = [name for name in names if name.partition(":")[0] in KINDS]
    with in_a_sentence(run.folder, AnalysisError):
        analysis = Analysis(run.folder)
        every = all_figures(analysis, compute(analysis), flows, alone=bool(flows))
        found = {each.id: each for each in every}
    for name in set(names) - {*kinds}:
        if name not in found:
            raise UsageError(
                f"--figure: {name:.80}: no such figure{suggest(name, found)}",
                f"there are {', '.join(found)}, time:SERIES and cdf:SERIES",
            )
    figures = [each for each in found.values() if each.id in names or not names]
    figures += drawn_figures(experiment, kinds)
    return _save(experiment, figures, run.folder / FIGURES, how)


def sweep_figures(
    experiment: Experiment, asked: Sequence[str], names: Sequence[str], into: Path, how: Print
) -> list[Path]:
    """Write the figures of a sweep that answer it, or the named ones, and its table.

    Args:
        experiment: the sweep, with its derived metrics.
        asked: the metrics that it answers for.
        names: as for drawn_figures(); by default those of `asked`, and of one point, which makes no
            curve, their distributions.
        into: the folder.
        how: how they are written.
    """
    chosen = names or asked or ["goodput"]
    if not names and len(group_runs(experiment.results)) == 1:
        chosen = [f"cdf:{name}" for name in chosen]
    elif not names and len(map_axes(experiment)) == 2:
        chosen = [*chosen, *(f"map:{name}" for name in asked)]
    paths = _save(experiment, drawn_figures(experiment, chosen), into, how)
    answer = answer_of(experiment, asked)
    left = len(answer.axes)
    tables = answer_tables(answer) if asked else []
    for ending, write in (("tex", latex_table), ("md", markdown_table)):
        if tables:
            paths.append(into / f"answer.{ending}")
            paths[-1].write_text("\n".join(write(table, left) for table in tables), "utf-8")
    return paths


def _save(experiment: Experiment, figures: list[Figure], folder: Path, how: Print) -> list[Path]:
    if how.numbers:
        return save_numbers(figures, folder)
    # Drawing takes longer than the rest of a short run, so it is done only on demand.
    from capture_analysis.pictures import plots  # noqa: PLC0415 - a drawing library

    conditions = _conditions(experiment)
    foot = ("" if how.style else conditions) if how.foot is None else how.foot
    style = [STYLES.get(how.style, how.style)] if how.style else []
    try:
        paths = plots.save_all(figures, folder, foot, style, _ENDINGS)
    except OSError as error:
        if how.style and how.style in str(error):
            raise UsageError(
                f"--style: {how.style:.80}: neither a style nor a file of one",
                f"there are {', '.join(STYLES)}, and those of matplotlib",
            ) from error
        raise
    captions = (
        (f"{each.title}. {_formulas(experiment, each)}{each.caption}", each.id) for each in figures
    )
    made = f"{conditions}; {how.command}."
    tex = "\n".join(latex_figure(name, f"{caption} {made}") for caption, name in captions)
    (folder / CAPTIONS).write_text(tex, "utf-8")
    return [*paths, *save_numbers(figures, folder), folder / CAPTIONS]


def _formulas(experiment: Experiment, figure: Figure) -> str:
    """Define the metrics of a figure that the experiment's file derives."""
    labels = (figure.x_label, figure.y_label, *(each.name for each in figure.lines))
    shown = {each.partition(",")[0] for each in labels}
    return "".join(
        f"{name} is {each.formula}{f' ({each.meaning})' if each.meaning else ''}. "
        for name, each in experiment.said.metrics.items()
        if {name, name.replace("_", " ")} & shown
    )


def _conditions(experiment: Experiment) -> str:
    """Write kernel, clock, seeds and identity; that of several runs is the digest of theirs."""
    runs = experiment.results
    first = runs[0]
    identities = sorted(each.manifest.identity for each in runs)
    of = f"Experiment {experiment.id if len(runs) > 1 else first.id}"
    where = f"Linux {first.metrics.kernel}, {first.metrics.clock_source} time"
    seeds = experiment.axes.get(SEED) or [str(first.manifest.experiment.seed)]
    whole = len(seeds) > 2 and int(seeds[-1]) - int(seeds[0]) == len(seeds) - 1
    listed = f"{seeds[0]} to {seeds[-1]}" if whole else ", ".join(seeds)
    where += f", seed{'s' * (len(seeds) > 1)} {listed}"
    if len(runs) == 1:
        return f"{of}, {where}, run {first.manifest.run}, identity {identities[0]}"
    digest = hashlib.sha256("\n".join(identities).encode()).hexdigest()[:_SHORT]
    return f"{of}, {where}, {len(runs)} runs, identities' digest {digest}"
