"""A card: the results of congestion controls in a suite's situations, one number for each.

A row is a metric of a situation, a column a control; there is no total score. A number's colour
follows from its distance to the best of its row, or to the row's target, such as the fair share.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from statistics import median
from typing import Literal

from capture_analysis.metrics.fairness import JAIN_INDEX
from capture_analysis.pages.page_template import number
from pydantic import Field

from twoway.contract.judge import Verdict
from twoway.contract.model import Document, Record
from twoway.contract.statements import in_words, label
from twoway.contract.suite import AXIS, Better, HarmRows, ReadSuite, Row, Shown
from twoway.contract.verdicts import fails
from twoway.errors import UsageError
from twoway.manifest import SEED
from twoway.measure.metrics.fairness_by_second import JAIN_LEAST, JAIN_MEDIAN
from twoway.report.flow_table import align_columns
from twoway.report.paper_text import csv_text
from twoway.report.results import Experiment, Result

CARD = "card.json"
# The beginning of the reason why a cell of QUIC has no number: a program cannot run the row.
NOT_FOR = "not for a program: "
# Shares of the best value: a number above the first is as good as the best, one below the second
# is poor.
_NEAR, _POOR = 0.9, 0.5
_JAIN = {each.name for each in (JAIN_INDEX, JAIN_MEDIAN, JAIN_LEAST)}


class Said(Record):
    """Printed statements on a cell's number."""

    claim: str = Field(description="what the source says, in our words")
    where: str = Field(description="the source: section, figure or table")
    printed: str = Field(description="its number with its precision, or its bound")
    verdict: Verdict = Field(description="the number beside it")


class Cell(Record):
    """One control's number in a row."""

    value: float | None = Field(description="the metric, the median over seeds; null if undefined")
    least: float | None = Field(description="the least over seeds")
    most: float | None = Field(description="the most over seeds")
    standing: Literal["near", "between", "poor"] | None = Field(
        description="compared with the best of the row, or with its target: within a tenth, "
        "between, less than half as good"
    )
    doubt: str = Field(description="why the number is not to be believed, or why there is none")
    said: tuple[Said, ...] = Field(description="what is in print about the number")
    runs: tuple[str, ...] = Field(description="the ids of its points, one for each seed")


class Line(Record):
    """A metric of a situation, for all controls."""

    row: str = Field(description="the experiment's id")
    at: str = Field(description="its point, without control and seed")
    asks: str = Field(description="the question")
    source: str = Field(description="who asks for it")
    metric: str = Field(description="the metric's name; empty if no run shows the row")
    unit: str = Field(description="its unit, 1 for shares and counts")
    better: Better = Field(
        description="which values are better: more, less, or those nearer to a number"
    )
    worst: float = Field(
        description="the value that is as bad as possible, unless less is better: 0, and 1/n of "
        "Jain's index of n flows"
    )
    cells: dict[str, Cell] = Field(description="by control")

    def situation(self, suite: str) -> str:
        """Return the row's name without the suite's."""
        return self.row.removeprefix(f"{suite}-")

    def place(self, suite: str) -> str:
        """Return the row's name without the suite's, and the values of its axes."""
        return f"{self.situation(suite)} {self.at}".rstrip()

    @property
    def aim(self) -> str:
        """The values that are better, in words."""
        return self.better if isinstance(self.better, str) else f"near {number(self.better)}"

    def distance(self, value: float) -> float:
        """Compute how far a value is from good, for comparisons: less is better."""
        if isinstance(self.better, str):
            return -value if self.better == "more" else value
        return abs(value - self.better)

    def with_standing(self) -> "Line":
        """Compare each believable number with the best of the row, or with its target."""
        sound = {
            control: cell.value
            for control, cell in self.cells.items()
            if cell.value is not None and not cell.doubt
        }
        if not sound:
            return self
        best = Shown(metric=self.metric, better=self.better).best([*sound.values()])
        found = {
            control: self.cells[control].model_copy(
                update={"standing": compare_with_best(value, best, self.better, self.worst)}
            )
            for control, value in sound.items()
        }
        return self.model_copy(update={"cells": {**self.cells, **found}})


class Spot(Record):
    """Throughput and delay of the flow under test at a point, the medians over seeds."""

    row: str = Field(description="the experiment's id")
    at: str = Field(description="its point, without control and seed")
    control: str = Field(description="the control")
    goodput: float = Field(description="of the flow, Mbit/s")
    rtt_p95: float = Field(description="the 95th percentile of its round trips, ms")


class Card(Document):
    """The numbers of all controls in a suite."""

    schema_: Literal[2] = Field(default=2, description="version of this format: 2")
    suite: str = Field(description="the suite's name")
    suite_sha256: str = Field(description="of its files")
    title: str = Field(description="the suite's title")
    columns: tuple[str, ...] = Field(description="the controls")
    kernels: tuple[str, ...] = Field(description="the releases of the kernels used")
    lines: tuple[Line, ...] = Field(description="rows, in the suite's order")
    harm: HarmRows | None = Field(default=None, description="the rows for the matrix of harm")
    spots: tuple[Spot, ...] = Field(default=(), description="throughput and delay by row")
    absent: str = Field(default="", description="what the suite does not try")

    def json_text(self) -> str:
        """Format the card as JSON: each row, and all spots of a point, are one line."""
        text = self.model_copy(update={"lines": (), "spots": ()}).model_dump_json()
        points = groupby(self.spots, lambda spot: (spot.row, spot.at))
        rows: dict[str, list[list[Record]]] = {
            "lines": [[line] for line in self.lines],
            "spots": [[*each] for _, each in points],
        }
        for name, records in rows.items():
            inner = ",\n".join(",".join(each.model_dump_json() for each in row) for row in records)
            text = text.replace(f'"{name}":[]', f'\n"{name}":[\n{inner}\n]')
        return text

    @property
    def repetitions(self) -> int:
        """The number of runs behind a cell, one for each seed."""
        return max((len(c.runs) for line in self.lines for c in line.cells.values()), default=0)

    @property
    def runs_in_words(self) -> str:
        """The number of runs behind each number, in words."""
        if self.repetitions > 1:
            return f"each number is the median of {self.repetitions} runs with other seeds"
        return "each number is of one run"

    @property
    def has_printed(self) -> bool:
        """True if something is in print about a cell."""
        return any(cell.said for line in self.lines for cell in line.cells.values())


def make_card(
    suite: ReadSuite,
    columns: Sequence[str],
    experiments: Iterable[Experiment],
    failed: Mapping[str, str],
    without: Mapping[str, Mapping[str, str]],
) -> Card:
    """Make a card of a suite's runs, with a column for each control.

    `failed` has the reason why a point has no run, by its id; `without` has the reasons why a
    control cannot run rows, by control and row.
    """
    runs: dict[str, list[Result]] = {}
    for experiment in experiments:
        runs.setdefault(experiment.id, []).extend(experiment.results)
    lines = []
    for row, asked in suite.rows.items():
        if asked.cannot:
            lines.append(_without_run(row, asked, columns))
        units = {
            n: each.unit for run in runs.get(row, ()) for n, each in run.metrics.metrics.items()
        }
        places = _places(runs.get(row, ()))
        for place in dict.fromkeys((*places, *_failed_places(row, failed))):
            by_control = places.get(place, {})
            why = {
                each: without.get(each, {}).get(row) or _find_reason(row, each, place, failed)
                for each in columns
            }
            for shown in asked.shows:
                cells = {
                    each: _cell(shown.metric, by_control.get(each, ()), why[each])
                    for each in columns
                }
                lines.append(
                    Line(
                        row=row,
                        at=place,
                        asks=asked.asks,
                        source=asked.source,
                        metric=shown.metric,
                        unit=units.get(shown.metric, "1"),
                        better=shown.better,
                        worst=_worst(shown.metric, runs.get(row, ())),
                        cells=cells,
                    ).with_standing()
                )
    found = [result for results in runs.values() for result in results]
    return Card(
        suite=suite.name,
        suite_sha256=suite.sha256,
        title=suite.said.title,
        columns=tuple(columns),
        kernels=tuple(dict.fromkeys(each.manifest.kernel.release for each in found)),
        lines=tuple(lines),
        harm=suite.harm,
        spots=tuple(spot for row in suite.rows for spot in _spots(row, runs.get(row, ()))),
        absent=suite.said.absent or "",
    )


def _spots(row: str, results: Sequence[Result]) -> Iterator[Spot]:
    """Yield the spots of a row whose flow under test is one connection."""
    for place, by_control in _places(results).items():
        for control, found in by_control.items():
            flow = found[0].manifest.experiment.matrix[AXIS].set[0].split(".")[1]
            pairs = [
                (goodput.value, delay.value)
                for metrics in (each.metrics.metrics for each in found)
                if (goodput := metrics.get(f"goodput.{flow}")) and goodput.value is not None
                if (delay := metrics.get(f"rtt_p95.{flow}")) and delay.value is not None
            ]
            if pairs:
                goodput, delay = (median(values) for values in zip(*pairs, strict=True))
                yield Spot(row=row, at=place, control=control, goodput=goodput, rtt_p95=delay)


def _without_run(row: str, asked: Row, columns: Sequence[str]) -> Line:
    """Make the line of a row without a run: each cell has the reason."""
    return Line(
        row=row,
        at="",
        asks=asked.asks,
        source=asked.source,
        metric="",
        unit="1",
        better="more",
        worst=0,
        cells={each: _cell("", (), asked.cannot or "") for each in columns},
    )


def read_card(path: Path) -> Card:
    """Read a card, or the one in a folder.

    Raises: UsageError if the file is no card.
    """
    path = path / CARD if path.is_dir() else path
    try:
        return Card.read(path)
    except (OSError, ValueError) as error:
        raise UsageError(f"{error}: no card of `twoway score`") from error


def refuse_other_runs(card: Card, results: Iterable[Result]) -> None:
    """Raise UsageError if runs do not give the card's numbers: they are newer than the card."""
    there = {result.id: result for result in results}
    for line in card.lines:
        for cell in line.cells.values():
            runs = [there[each] for each in cell.runs]
            if runs and _cell(line.metric, runs, "").value != cell.value:
                raise UsageError(
                    f"card of {card.suite}: {line.row} {line.at}: its runs are newer than the card",
                    "`twoway score` makes the card again",
                )


def _places(results: Iterable[Result]) -> dict[str, dict[str, list[Result]]]:
    """Group a row's runs by point, and the runs of a point by control."""
    found: dict[str, dict[str, list[Result]]] = {}
    for result in results:
        control = str(result.point[AXIS])
        found.setdefault(_place(result), {}).setdefault(control, []).append(result)
    return found


def _place(result: Result) -> str:
    """Return the name of a run's point without its control and seed."""
    return _axes((axis, label(value)) for axis, value in result.point.items())


def _axes(axes: Iterable[tuple[str, str]]) -> str:
    return ", ".join(f"{axis} {value}" for axis, value in axes if axis not in (AXIS, SEED))


def _failed_places(row: str, failed: Iterable[str]) -> list[str]:
    """List the places of a row at which a point has no run."""
    points = (name.partition("@")[2] for name in failed if name.startswith(f"{row}@"))
    axes = ([axis.partition("=") for axis in point.split(",")] for point in points)
    return list(dict.fromkeys(_axes((axis, value) for axis, _, value in each) for each in axes))


def _find_reason(row: str, control: str, place: str, failed: Mapping[str, str]) -> str:
    """Find the reason why a control has no run at a place."""
    points = place.replace(", ", ",").replace(" ", "=")
    for name, reason in failed.items():
        if f"{name},".startswith(f"{row}@{AXIS}={control},") and points in name:
            return reason
    return "not run"


def _cell(metric: str, results: Sequence[Result], why: str) -> Cell:
    """Make a control's cell from its runs; if it has none, write the reason."""
    found = [each.metrics.metrics.get(metric) for each in results]
    values = [each.value for each in found if each and each.value is not None]
    doubts = [
        f"not to be believed: {check.check}: {check.value}, bound {check.bound}"
        for each in results
        for check in each.verdicts.fidelity
        if fails(check)
    ]
    rows = [row for each in results for row in each.verdicts.claims if row.metric == metric]
    said = dict.fromkeys(
        Said(claim=row.claim, where=row.where, printed=in_words(row), verdict=row.verdict)
        for row in rows
    )
    undefined = "" if values else "undefined in this run"
    if None in found:
        undefined = f"{NOT_FOR}no capture shows it of QUIC, which is encrypted"
    return Cell(
        value=median(values) if values else None,
        least=min(values, default=None),
        most=max(values, default=None),
        standing=None,
        doubt=why if not results else doubts[0] if doubts else undefined,
        said=tuple(said),
        runs=tuple(each.id for each in results),
    )


def _worst(metric: str, results: Sequence[Result]) -> float:
    """Return the value of a metric that is as bad as possible where more is better."""
    if not results:
        return 0
    manifest = results[0].manifest
    senders = sum(bool(each.udp_port) for each in manifest.programs)
    return worst_of(metric, len(manifest.connections) + senders)


def worst_of(metric: str, flows: int) -> float:
    """Return the value of a metric of some flows that is as bad as possible: 0, or Jain's least."""
    return 1 / flows if metric in _JAIN and flows else 0


def compare_with_best(
    value: float, best: float, better: Better, worst: float
) -> Literal["near", "between", "poor"]:
    """Compare a number with the best of its row, or with its target.

    `worst` is the value that is as bad as possible, unless less is better.
    """
    share = goodness(value, best, better, worst)
    return "near" if share >= _NEAR else "poor" if share < _POOR else "between"


def goodness(value: float, best: float, better: Better, worst: float) -> float:
    """Compute a number's share of the best, at most 1; arguments as for `compare_with_best`."""
    if value == best:
        return 1
    if better == "less":
        return best / value if value else 0
    return 1 - abs(value - best) / (best - worst) if best > worst else 0


def csv_table(card: Card) -> str:
    """Format a card as CSV: a row for each number."""
    titles = (
        *("row", "at", "metric", "unit", "better", "control"),
        *("value", "least", "most", "doubt", "in print"),
    )
    rows: list[tuple[object, ...]] = [titles]
    for line in card.lines:
        for control, cell in line.cells.items():
            at = (line.row, line.at, line.metric, line.unit, line.better, control)
            said = "; ".join(f"{each.printed}: {each.verdict.value}" for each in cell.said)
            rows.append((*at, cell.value, cell.least, cell.most, cell.doubt, said))
    return csv_text(rows)


def card_table(card: Card) -> list[str]:
    """Format a card for a terminal: a line for each row, a column for each control."""
    return align_columns(card_cells(card))


def card_cells(card: Card) -> list[tuple[str, ...]]:
    """Return the titles of a card's columns, and below them the words of each row."""
    rows = [("", "better", *card.columns)]
    for line in card.lines:
        unit = f", {line.unit}" if line.unit != "1" else ""
        title = f"{line.place(card.suite)}: {line.metric}{unit}"
        if not line.metric:
            title = f"{line.situation(card.suite)}: no run shows it"
        aim = line.aim if line.metric else ""
        rows.append((title, aim, *(number(cell.value) for cell in line.cells.values())))
    return rows


def printed_table(card: Card) -> list[str]:
    """Format printed statements beside a card's numbers: a line each, after a line of titles."""
    return align_columns(printed_cells(card))


def printed_cells(card: Card) -> list[tuple[str, ...]]:
    """Return titles, and below them the words of each printed statement; nothing without any."""
    rows = [
        (
            f"{line.place(card.suite)}: {line.metric}",
            control,
            number(cell.value),
            said.printed,
            said.verdict.value,
            said.where,
        )
        for line in card.lines
        for control, cell in line.cells.items()
        for said in cell.said
    ]
    return [("", "", "here", "in print", "", ""), *rows] if rows else []
