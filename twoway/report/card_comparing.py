"""Two cards of a suite beside each other: the cells that differ.

Cells are the same if they have the same number, or none. A column that only one card has is named,
but not compared.
"""

from typing import Literal

from capture_analysis.pages.page_template import number
from pydantic import Field

from twoway.contract.model import Document, Record
from twoway.errors import UsageError
from twoway.report.card import Card, Cell, Line
from twoway.report.flow_table import align_columns

# Rows that are printed; --json has all.
_MOST_ROWS = 40
Place = tuple[str, str, str]


class CellPair(Record):
    """A cell that differs: the number in the first card and in the second."""

    row: str = Field(description="the experiment's id")
    at: str = Field(description="its point, without control and seed")
    metric: str = Field(description="the metric's name")
    control: str = Field(description="the column; FIRST and SECOND of two as FIRST, SECOND")
    first: float | None = Field(description="the number in the first card; null if it has none")
    second: float | None = Field(description="in the second")
    better: Literal["first", "second"] | None = Field(
        description="which number is better; null if one is missing or both are equally good"
    )
    beyond_chance: bool = Field(
        description="no run of one card has a number in the range of the other's runs"
    )


class CardComparison(Document):
    """The cells in which two cards of a suite differ."""

    schema_: Literal[2] = Field(default=2, description="version of this format: 2")
    suite: str = Field(description="the suite's name")
    same_files: bool = Field(description="both cards are of the same files of the suite")
    kernels: tuple[tuple[str, ...], tuple[str, ...]] = Field(
        description="the releases of the kernels of the first card, and of the second"
    )
    cells: tuple[CellPair, ...] = Field(description="cells that differ, in the first card's order")
    common_cells: int = Field(description="how many cells are the same")
    alone: tuple[tuple[str, ...], tuple[str, ...]] = Field(
        description="columns that the first card alone has, and the second"
    )
    missing: int = Field(description="rows that one of the cards alone has")

    @property
    def same(self) -> bool:
        """True if no cell differs and no row is missing."""
        return not (self.cells or self.missing)


def compare_cards(first: Card, second: Card) -> CardComparison:
    """Compare the columns that two cards share.

    Raises: UsageError if the cards are of two suites, or share no column.
    """
    if first.suite != second.suite:
        raise UsageError(
            f"a card of {first.suite:.80} and one of {second.suite:.80}: their rows differ"
        )
    shared = [each for each in first.columns if each in second.columns]
    if not shared:
        raise UsageError(
            f"the cards share no column: {', '.join(first.columns)} and {', '.join(second.columns)}"
        )
    return _compared(first, second, [(each, each) for each in shared])


def compare_columns(card: Card, control: str, other: str) -> CardComparison:
    """Compare two columns of a card."""
    return _compared(card, card, [(control, other)])


def _compared(first: Card, second: Card, pairs: list[tuple[str, str]]) -> CardComparison:
    there = {_place(line): line for line in second.lines}
    rows = [(line, there[_place(line)]) for line in first.lines if _place(line) in there]
    cells = [_pair(here, other, *pair) for here, other in rows for pair in pairs]
    differing = tuple(each for each in cells if each.first != each.second)
    return CardComparison(
        suite=first.suite,
        same_files=first.suite_sha256 == second.suite_sha256,
        kernels=(first.kernels, second.kernels),
        cells=differing,
        common_cells=len(cells) - len(differing),
        alone=(_columns_alone(first, second), _columns_alone(second, first)),
        missing=len(first.lines) + len(second.lines) - 2 * len(rows),
    )


def _place(line: Line) -> Place:
    return line.row, line.at, line.metric


def _columns_alone(card: Card, other: Card) -> tuple[str, ...]:
    return tuple(each for each in card.columns if each not in other.columns)


def _pair(here: Line, other: Line, control: str, beside: str) -> CellPair:
    one, two = here.cells[control], other.cells[beside]
    a, b = one.value, two.value
    better: Literal["first", "second"] | None = None
    if a is not None and b is not None:
        distances = here.distance(a), here.distance(b)
        if distances[0] != distances[1]:
            better = "first" if distances[0] < distances[1] else "second"
    return CellPair(
        row=here.row,
        at=here.at,
        metric=here.metric,
        control=control if control == beside else f"{control}, {beside}",
        first=a,
        second=b,
        better=better,
        beyond_chance=_are_apart(one, two) or _are_apart(two, one),
    )


def _are_apart(low: Cell, high: Cell) -> bool:
    """Tell whether all runs of one cell are below all of another, or one has no number."""
    return low.most is None or high.least is None or low.most < high.least


def comparison_table(found: CardComparison) -> list[str]:
    """List the differences, the cells first, then write how much is the same."""
    rows = [
        (
            f"{(each.row.removeprefix(f'{found.suite}-') + ' ' + each.at).rstrip()}: {each.metric}",
            each.control,
            number(each.first),
            number(each.second),
            f"the {each.better} is better" if each.better else "",
        )
        for each in found.cells[:_MOST_ROWS]
    ]
    lines = align_columns([("cells that differ", "", "first", "second", ""), *rows]) if rows else []
    if more := len(found.cells) - len(rows):
        lines.append(f"... and {more} more: --json has all")
    for which, columns in zip(("first", "second"), found.alone, strict=True):
        if columns:
            lines.append(f"in the {which} card alone: {', '.join(columns)}")
    if found.missing:
        lines.append(f"rows in one card alone: {found.missing}")
    first, second = (", ".join(each) for each in found.kernels)
    if first != second:
        lines.append(f"the first card is of Linux {first}, the second of Linux {second}")
    if not found.same_files:
        lines.append("the suite's files differ: a row may ask another question in each card")
    differing = len(found.cells)
    return [*lines, f"{differing} of {differing + found.common_cells} cells differ"]
