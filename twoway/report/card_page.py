"""The page of a card: its numbers, who harms whom, throughput over delay, and what is not here."""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import groupby
from os.path import relpath
from pathlib import Path
from typing import NamedTuple

from capture_analysis.pages.page_template import number
from capture_analysis.pictures.figure import COLOURS
from markupsafe import Markup, escape

from twoway.contract.suite import HarmRows
from twoway.contract.writing import written_aside
from twoway.report import pages
from twoway.report.card import CARD, NOT_FOR, Card, Cell, Spot, csv_table
from twoway.report.paper_text import csv_text
from twoway.report.results import Experiment

PAGE, CSV, HARM_CSV = "index.html", "card.csv", "harm.csv"
TABLES = (CARD, CSV, HARM_CSV)
# The drawing of throughput over delay, pixels: its size, its axes, and the space of a label.
_WIDTH, _HEIGHT = 280, 190
_LEFT, _RIGHT, _TOP, _BOTTOM = 10, 270, 14, 160
_MIDDLE = (_LEFT + _RIGHT) / 2
_WORD, _LINE = 60, 11
_Place = tuple[str, str, str]


def write_card(card: Card, experiments: Iterable[Experiment], folder: Path) -> Path:
    """Write a card's document, its tables and its page, which links to the runs.

    Returns: the page.
    """
    runs = [(run.id, run.folder) for each in experiments for run in each.results]
    links = {name: relpath(pages.page_of(run), folder) for name, run in runs}
    card.write(folder / CARD)
    harms = harm_tables(card)
    tables = {CSV: csv_table(card)} | ({HARM_CSV: harm_csv(harms)} if harms else {})
    for name, table in tables.items():
        with written_aside(folder / name) as file:
            file.write(table.encode())
    pages.write(
        folder / PAGE,
        "card.html.j2",
        [],
        card=card,
        not_for=NOT_FOR,
        links=links,
        tables=(CARD, *tables),
        buttons=_buttons(card),
        harms=harms,
        planes=planes(card),
    )
    return folder / PAGE


def _buttons(card: Card) -> dict[str, int]:
    """Count the rows that each button shows: one button for each metric, one for each verdict."""
    kinds = Counter(line.metric.partition(".")[0] for line in card.lines if line.metric)
    printed = Counter(
        verdict
        for line in card.lines
        for verdict in {said.verdict.value for cell in line.cells.values() for said in cell.said}
    )
    return {**kinds, **printed}


class HarmTable(NamedTuple):
    """Harm in goodput at one place: goodput beside another control compared with goodput alone.

    It is that of report/harm.py: 0 if nothing changes, 1 if all is lost. The diagonal is
    the harm of a control to itself, with which RFC 9743 and Ware and others compare.

    Attributes:
        at: the point, without control.
        harm: by the control that is harmed, then by the one beside it; None without a run.
    """

    at: str
    harm: dict[str, dict[str, float | None]]


def harm_tables(card: Card) -> list[HarmTable]:
    """Compute a table for each point at which the card has every control alone."""
    if card.harm is None:
        return []
    cells = {(line.row, line.at, line.metric): line.cells for line in card.lines}
    places = [line.at for line in card.lines if line.row == card.harm.alone]
    return [
        HarmTable(
            at,
            {
                harmed: {by: _harm(card.harm, cells, at, harmed, by) for by in card.columns}
                for harmed in card.columns
            },
        )
        for at in dict.fromkeys(places)
    ]


def harm_csv(tables: Sequence[HarmTable]) -> str:
    """Format tables as CSV: a row for each pair that has a run."""
    rows = (
        (at, harmed, by, harm)
        for at, table in tables
        for harmed, found in table.items()
        for by, harm in found.items()
        if harm is not None
    )
    return csv_text([("at", "harmed", "by", "harm"), *rows])


def _harm(
    rows: HarmRows, cells: dict[_Place, dict[str, Cell]], at: str, harmed: str, by: str
) -> float | None:
    alone = _value(cells, (rows.alone, at, "goodput.flow"), harmed)
    if harmed == by:
        beside = _value(cells, (rows.itself, at, "goodput.other"), harmed)
    else:  # columns of the suite run as `other`, other controls as the flow under test
        beside = _value(cells, (rows.beside, f"other {harmed}, {at}", "goodput.other"), by)
        if beside is None:
            beside = _value(cells, (rows.beside, f"other {by}, {at}", "goodput.flow"), harmed)
    return None if beside is None or not alone else 1 - beside / alone


def _value(cells: dict[_Place, dict[str, Cell]], place: _Place, control: str) -> float | None:
    cell = cells[place][control] if place in cells else None
    return cell.value if cell and not cell.doubt else None


def planes(card: Card) -> list[tuple[str, Markup]]:
    """Draw a plane for each point; return its title with it."""
    suite = f"{card.suite}-"
    return [
        (f"{row.removeprefix(suite)} {at}", _plane(list(spots), card.columns))
        for (row, at), spots in groupby(card.spots, lambda spot: (spot.row, spot.at))
    ]


def _plane(spots: Sequence[Spot], columns: Sequence[str]) -> Markup:
    """Draw throughput over delay of all controls in a situation: up and left is better."""
    most = max(spot.goodput for spot in spots) or 1
    longest = max(spot.rtt_p95 for spot in spots) or 1
    label = "; ".join(
        f"{each.control} {number(each.goodput)} Mbit/s, {number(each.rtt_p95)} ms" for each in spots
    )
    shapes = [
        f'<path d="M{_LEFT} {_TOP}V{_BOTTOM}H{_RIGHT}" class="axes"/>',
        f'<text x="{_LEFT + 4}" y="{_TOP - 4}">{number(most)} Mbit/s</text>',
        f'<text x="{_RIGHT}" y="{_BOTTOM + 14}" class="end">{number(longest)} ms</text>',
        f'<text x="{_LEFT}" y="{_BOTTOM + 14}">0</text>',
    ]
    labels: list[tuple[float, float]] = []
    # Labels give way towards the middle, so those at the top and at the bottom are placed first.
    for spot in sorted(spots, key=lambda each: -abs(each.goodput / most - 0.5)):
        colour = COLOURS[columns.index(spot.control) % len(COLOURS)]
        ink = "currentColor" if colour == "#000000" else colour
        x = _LEFT + (_RIGHT - _LEFT) * spot.rtt_p95 / longest
        y = _BOTTOM - (_BOTTOM - _TOP) * spot.goodput / most
        place = f'x="{x - 8:.1f}" class="end"' if x > _MIDDLE else f'x="{x + 8:.1f}"'
        line = y
        while any(abs(x - a) < _WORD and abs(line - b) < _LINE for a, b in labels):
            line += _LINE / 2 if spot.goodput > most / 2 else -_LINE / 2
        labels.append((x, line))
        shapes += [
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{ink}"/>',
            f'<text {place} y="{line + 4:.1f}" fill="{ink}">{escape(spot.control)}</text>',
        ]
    return Markup(  # noqa: S704 - numbers, the palette's colours and escaped names
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{escape(label)}">'
        f"{''.join(shapes)}</svg>"
    )
