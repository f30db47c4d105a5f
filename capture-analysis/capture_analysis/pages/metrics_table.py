"""Tables of metrics: name, values, unit, definition, missing values."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from capture_analysis.one_capture.measure import Quantity


@dataclass(frozen=True)
class Row:
    """A metric, a value for each column, and the reasons for missing values."""

    quantity: Quantity
    values: list[float | None]
    reasons: list[str]


@dataclass(frozen=True)
class Group:
    """The rows of one measure."""

    title: str
    vantage: str
    rows: list[Row]


@dataclass(frozen=True)
class Table:
    """A table: a column per direction or capture, a group of rows per measure."""

    heads: list[str]
    groups: list[Group]


def table(
    heads: list[str],
    measures: Iterable[tuple[str, str, Sequence[Quantity]]],
    measured: Sequence[Mapping[str, Any]],
) -> Table:
    """Make a table of metrics.

    Args:
        heads: heads of the columns.
        measures: title, vantage and quantities of each measure.
        measured: for each column its metrics by name, as in documents; a metric that is missing
            there has no value.
    """
    groups = [
        Group(title, vantage, [_row(quantity, measured) for quantity in quantities])
        for title, vantage, quantities in measures
        if quantities
    ]
    return Table(heads, groups)


def _row(quantity: Quantity, measured: Sequence[Mapping[str, Any]]) -> Row:
    found = [metrics.get(quantity.name, {}) for metrics in measured]
    reasons = dict.fromkeys(each["why"] for each in found if each.get("why"))
    return Row(quantity, [each.get("value") for each in found], list(reasons))
