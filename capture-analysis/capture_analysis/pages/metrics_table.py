"""Metrics as a table: of each its name, values, unit, definition, and why there is none."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from capture_analysis.one_capture.measure import Quantity


@dataclass(frozen=True)
class Row:
    """A metric, a value for each column, and the reasons why some are none."""

    quantity: Quantity
    values: list[float | None]
    reasons: list[str]


@dataclass(frozen=True)
class Group:
    """What one measure yields."""

    title: str
    vantage: str
    rows: list[Row]


@dataclass(frozen=True)
class Table:
    """Columns by what is measured, groups of rows by measure."""

    heads: list[str]
    groups: list[Group]


def table(
    heads: list[str],
    measures: Iterable[tuple[str, str, Sequence[Quantity]]],
    measured: Sequence[Mapping[str, Any]],
) -> Table:
    """A table of metrics.

    Args:
        heads: of the columns.
        measures: title, vantage point and quantities of each.
        measured: of each column the metrics by name, as documents have them; what is not there
            has no value.
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
