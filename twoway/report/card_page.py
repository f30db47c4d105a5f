"""The page of a card: its numbers, who harms whom, throughput over delay, and what is not here."""

from collections import Counter
from collections.abc import Iterable
from os.path import relpath
from pathlib import Path

from twoway.contract.writing import written_aside
from twoway.report import pages
from twoway.report.card import CARD, NOT_FOR, Card, csv_table
from twoway.report.card_harm import harm_csv, harm_tables
from twoway.report.card_plane import planes
from twoway.report.results import Experiment

PAGE, CSV, HARM_CSV = "index.html", "card.csv", "harm.csv"
TABLES = (CARD, CSV, HARM_CSV)


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
