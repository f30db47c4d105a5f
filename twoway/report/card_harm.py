"""Which control harms which: goodput beside another control compared with goodput alone.

The harm is that of report/harm.py: 0 if nothing changes, 1 if all is lost. The diagonal is what a
control does to itself, with which RFC 9743 and Ware and others compare.
"""

import csv
import io
from collections.abc import Sequence
from typing import NamedTuple

from twoway.contract.suite import HarmRows
from twoway.report.card import Card, Cell

Place = tuple[str, str, str]


class HarmTable(NamedTuple):
    """Harm in goodput at one place.

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
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(("at", "harmed", "by", "harm"))
    for at, table in tables:
        for harmed, by in table.items():
            rows.writerows((at, harmed, who, harm) for who, harm in by.items() if harm is not None)
    return text.getvalue()


def _harm(
    rows: HarmRows, cells: dict[Place, dict[str, Cell]], at: str, harmed: str, by: str
) -> float | None:
    alone = _value(cells, (rows.alone, at, "goodput.flow"), harmed)
    if harmed == by:
        beside = _value(cells, (rows.itself, at, "goodput.other"), harmed)
    else:  # columns of the suite run as `other`, other controls as the flow under test
        beside = _value(cells, (rows.beside, f"other {harmed}, {at}", "goodput.other"), by)
        if beside is None:
            beside = _value(cells, (rows.beside, f"other {by}, {at}", "goodput.flow"), harmed)
    return None if beside is None or not alone else 1 - beside / alone


def _value(cells: dict[Place, dict[str, Cell]], place: Place, control: str) -> float | None:
    cell = cells[place][control] if place in cells else None
    return cell.value if cell and not cell.doubt else None
