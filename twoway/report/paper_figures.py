"""Figures and tables of a paper, drawn again from runs, with the paper's numbers."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from capture_analysis.errors import AnalysisError
from capture_analysis.pictures.figure import Figure, FloatArray, Line

from twoway.contract.judge import Verdict
from twoway.contract.statements import label
from twoway.contract.verdicts import ClaimRow, PredictionRow
from twoway.errors import in_a_sentence
from twoway.manifest import captures_left_out, without_captures
from twoway.measure.analysis import Analysis
from twoway.report.claims import Claim, Said, claims, predictions
from twoway.report.connections import shown_names
from twoway.report.curves import LEGEND, PRINTED, RUN, axis_label, axis_names, said_lines
from twoway.report.figures import all_figures
from twoway.report.papers import Reading, Redrawn, Source
from twoway.report.results import Experiment, Result
from twoway.report.safe_region import safe_region

Link = Callable[[Result], str]
# Verdicts on a figure that are shown beside the worst claim's.
NO_RUN, UNSOUND, FAILED = "no run", "not to be believed", "a prediction fails"
CONTRADICTED, NO_NUMBER = "a prediction is contradicted, on record", "no number in print"

# Verdicts that are neither good nor bad.
_KNOWN = (Verdict.EXPLAINED, Verdict.PAPER_DIFFERS, Verdict.NOT_COMPARABLE)
# Pictures that no run's report has.
_OWN: Mapping[str, Callable[[Experiment], Figure]] = {"safe-region": safe_region}
_NAMED = re.compile(r"(figure|table)s? (\d[\d.]*)(?: (and|to) (\d[\d.]*))?")
# Styles of lines that are statements, not measurements.
_SAID = ("dashed", "crosses", "letters", "spans")
# The number of marks on a level across a picture.
_MARKS = 9
# Palette index of theory's levels.
_THEORY = 2


@dataclass(frozen=True)
class PaperFigure:
    """A figure or table of a paper.

    Attributes:
        asked: its description in the paper's file.
        results: the runs that it shows.
        missing: its points without a run, by id.
        claims: the paper's claims about these runs and this figure, the worst first.
        predictions: predictions for the drawn metrics; for a picture, all of its run.
        figure: the drawing; None if no run has anything to draw.
    """

    asked: Redrawn
    results: tuple[Result, ...]
    missing: tuple[str, ...]
    claims: list[Claim]
    predictions: list[Said[PredictionRow]]
    figure: Figure | None

    @property
    def title(self) -> str:
        """The figure's name and its content."""
        return f"{self.asked.heading}: {self.asked.shows}"

    @property
    def experiments(self) -> list[str]:
        """The experiments whose runs the figure shows."""
        return list(dict.fromkeys(result.experiment_id for result in self.results))

    @property
    def pictured(self) -> Result | None:
        """The run whose captures the figure is drawn from; None if it needs metrics only."""
        from_captures = self.asked.picture and self.asked.picture not in _OWN
        return self.results[0] if from_captures and self.results else None

    @property
    def left_out(self) -> str:
        """Write which captures were left out that the figure needs, and how to make them; or ""."""
        if not self.pictured or not without_captures(self.pictured.folder):
            return ""
        return captures_left_out(self.pictured.folder, self.pictured.id)

    @property
    def covers(self) -> set[str]:
        """Ids of the experiments' own figures that show no more than this one."""
        drawn = self.asked.metrics or [self.asked.picture]
        return {f"{of}-{each.partition('.')[0]}" for of in self.experiments for each in drawn}

    @property
    def verdict(self) -> str:
        """The verdict on the figure in a few words."""
        if not self.results:
            return NO_RUN
        if not all(result.metrics.sound for result in self.results):
            return UNSOUND
        found = {said.row.verdict for said in self.predictions}
        if Verdict.FAIL in found:
            return FAILED
        if Verdict.CONTRADICTED in found:
            return CONTRADICTED
        return self.claims[0].verdict.value if self.claims else NO_NUMBER

    @property
    def look(self) -> str:
        """The verdict's class of style."""
        known = {Verdict.AGREES.value: "pass", NO_NUMBER: "open", NO_RUN: "open"}
        explained = {v.value for v in _KNOWN}
        return "known" if self.verdict in explained else known.get(self.verdict, "fail")

    @property
    def counted(self) -> str:
        """The figure's claims and predictions, counted."""
        found = Counter(claim.verdict.value for claim in self.claims)
        words = [f"{n} claim{'s' if n > 1 else ''}: {each}" for each, n in found.items()]
        if predicted := [said for said in self.predictions if not said.row.of_testbed]:
            kept = sum(said.row.verdict is Verdict.PASS for said in predicted)
            words.append(f"{kept} of {len(predicted)} predictions kept")
        if self.missing:
            words.append(f"without a run: {', '.join(self.missing)}")
        return "; ".join(words)


def paper_figures(
    source: Source, experiments: Sequence[Experiment], link: Link, failed: Sequence[str] = ()
) -> list[PaperFigure]:
    """Draw a paper's figures and tables from the runs of its experiments.

    A click on a run's point opens the address that `link` returns; `failed` are points without a
    run.
    """
    pictures: dict[str, dict[str, Figure]] = {}
    results = [result for experiment in experiments for result in experiment.results]
    found = []
    for asked in source.figures:
        # In the order of the paper's file, then of the sweep.
        mine = [
            result
            for run in asked.runs
            for result in results
            if run in (result.id, result.experiment_id) and _is_at(result, asked)
        ]
        shown = Experiment(asked.runs[0], tuple(mine))
        drawn = _draw_figure(asked, shown, link, pictures) if mine else None
        about = [claim for claim in claims([shown] if mine else []) if _is_about(asked, claim)]
        found.append(
            PaperFigure(
                asked,
                shown.results,
                tuple(name for name in failed if _shows(asked, name)),
                about,
                [each for each in predictions(shown) if not asked.metrics or _wants(asked, each)],
                _titled(drawn, asked, source, shown, about) if drawn else None,
            )
        )
    return found


def named_figures(where: str) -> set[str]:
    """List the figures and tables that a claim's `where` names, such as "figure 3.3"."""
    found = set()
    for kind, first, word, last in _NAMED.findall(where):
        numbers = [first.rstrip("."), *([last.rstrip(".")] if last else [])]
        if word == "to":
            chapter, dot, start = numbers[0].rpartition(".")
            stop = int(numbers[1].rpartition(".")[2])
            numbers = [f"{chapter}{dot}{n}" for n in range(int(start), stop + 1)]
        found |= {f"{kind} {number}" for number in numbers}
    return found


def _is_at(result: Result, asked: Redrawn) -> bool:
    return all(
        label(result.point.get(axis)) in map(label, values) for axis, values in asked.at.items()
    )


def _shows(asked: Redrawn, name: str) -> bool:
    """Tell whether a figure shows a point, by the point's id."""
    experiment, _, point = name.partition("@")
    parts = point.split(",")
    return bool({name, experiment} & set(asked.runs)) and all(
        any(f"{axis}={label(value)}" in parts for value in values)
        for axis, values in asked.at.items()
    )


def _wants(asked: Redrawn, said: Said[ClaimRow] | Said[PredictionRow]) -> bool:
    metric = said.row.metric
    return bool({metric, metric.partition(".")[0]} & {*asked.metrics, *asked.levels})


def _is_about(asked: Redrawn, claim: Claim) -> bool:
    """Tell whether a claim names the figure or is drawn in it."""
    figure = " ".join(asked.name.split()[:2])
    return figure in named_figures(claim.where) or any(_wants(asked, said) for said in claim.rows)


def _titled(
    figure: Figure, asked: Redrawn, source: Source, shown: Experiment, about: list[Claim]
) -> Figure:
    """Give a figure its id, title and caption."""
    runs = f"{len(shown.results)} runs" if len(shown.results) > 1 else "one run"
    of = ", ".join(dict.fromkeys(result.experiment_id for result in shown.results))
    caption = [f"{asked.heading} of {source.title}, drawn again from {runs} of {of}."]
    caption.append(LEGEND if asked.metrics or _levels_of(asked) else "")
    undefined = sum(not _is_defined(result, asked) for result in shown.results)
    if undefined:
        caption.append(f"At {undefined} of {len(shown.results)} points a metric is undefined.")
    caption += dict.fromkeys(f"{each.line}: {each.how}." for each in asked.readings)
    if not asked.readings and not about:
        caption.append("The paper's text prints no value of it: only our lines are drawn.")
    return replace(
        figure,
        id=f"plot-{asked.id}",
        title=f"{asked.heading}: {asked.shows}",
        caption=" ".join(filter(None, caption)),
    )


def _is_defined(result: Result, asked: Redrawn) -> bool:
    return all(
        found.value is not None
        for metric, found in result.metrics.metrics.items()
        if {metric, metric.partition(".")[0]} & set(asked.metrics)
    )


def _draw_figure(
    asked: Redrawn, shown: Experiment, link: Link, pictures: dict[str, dict[str, Figure]]
) -> Figure | None:
    if asked.picture:
        figure = _picture(asked, shown, pictures)
        lines = [*_levels(asked, shown.results[0], figure)] if figure else []
    else:
        axis = asked.across or RUN
        y_label, lines = said_lines(shown, axis, asked.metrics, link)
        figure = Figure(
            *(asked.id, "", "", axis_label(shown, axis), y_label, []),
            x_names=axis_names(shown, axis),
        )
    if not figure:
        return None
    figure = replace(figure, lines=[*figure.lines, *lines])
    if not any(len(line.x) and line.style not in _SAID for line in figure.lines):
        return None  # no measurement to draw
    names = dict.fromkeys(each.line for each in asked.readings)
    marks = [line for name in names for line in _read(name, asked.readings, figure)]
    return replace(figure, lines=[*figure.lines, *marks])


def _picture(
    asked: Redrawn, shown: Experiment, pictures: dict[str, dict[str, Figure]]
) -> Figure | None:
    """Draw a picture of the first run's report, with the lines that the file lists."""
    if asked.picture in _OWN:
        return _OWN[asked.picture](shown)
    result = shown.results[0]
    if without_captures(result.folder):
        return None
    chosen, connections = tuple(asked.lines), result.manifest.connections
    among = shown_names(connections, result.metrics)
    wanted = [c.name for c in connections if c.name.startswith(chosen) and c.name not in among]
    drawn = " ".join([result.id, *wanted])
    if drawn not in pictures:
        with in_a_sentence(result.folder, AnalysisError):
            every = all_figures(Analysis(result.folder), result.metrics, wanted)
        pictures[drawn] = {figure.id: figure for figure in every}
    figure = pictures[drawn].get(asked.picture)
    if not figure or not chosen:
        return figure
    return replace(figure, lines=[line for line in figure.lines if line.name.startswith(chosen)])


def _levels_of(asked: Redrawn) -> list[str]:
    """List the levels to draw; none for the picture of goodput, which has them already."""
    return [] if asked.picture == "goodput" else asked.levels


def _levels(asked: Redrawn, result: Result, figure: Figure) -> Iterator[Line]:
    """Draw statements on metrics as levels across the picture."""
    for row in result.verdicts.rows:
        if row.metric not in _levels_of(asked) or row.value is None:
            continue
        if isinstance(row, PredictionRow):
            x = _spread(figure, 2)
            yield Line(f"{row.metric}, predicted", x, np.full(2, row.value), "dashed", _THEORY)
        elif isinstance(row, ClaimRow) and not row.against:
            who = "paper" if row.by == "paper" else "their simulator"
            yield from _draw_marks(
                f"{row.metric}, {who}", _spread(figure, _MARKS), row.value, row.tolerance or 0
            )


def _read(name: str, readings: Sequence[Reading], figure: Figure) -> Iterator[Line]:
    """Draw the readings for one line."""
    rows = [
        (x, each.y, each.error)
        for each in readings
        if each.line == name
        for x in (_spread(figure, _MARKS) if each.x is None else [each.x])
    ]
    x, y, error = np.array(rows, float).T
    return _draw_marks(name, x, y, error)


def _spread(figure: Figure, count: int) -> FloatArray:
    """Spread places over the width of a figure."""
    xs = np.concatenate([line.x for line in figure.lines])
    return np.linspace(xs.min(), xs.max(), count)


def _draw_marks(
    name: str, x: FloatArray, value: float | FloatArray, error: float | FloatArray
) -> Iterator[Line]:
    """Draw printed values as crosses, with their precision as bars through them."""
    y = np.zeros(len(x)) + value
    yield Line(name, x, y, "crosses", PRINTED)
    if np.any(error):
        yield Line(f"{name}: precision", x, y - error, "spans", PRINTED, top=y + error)
