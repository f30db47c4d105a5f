"""Tables of metrics: name, values, unit, definition, missing values."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from capture_analysis.definition import Definition


@dataclass(frozen=True)
class Row:
    """A metric, a value for each column, and the reasons for missing values."""

    definition: Definition
    values: list[float | None]
    reasons: list[str]


@dataclass(frozen=True)
class Group:
    """The rows of one estimator."""

    title: str
    vantage: str
    rows: list[Row]


@dataclass(frozen=True)
class Table:
    """A table: a column per direction or capture, a group of rows per estimator."""

    heads: list[str]
    groups: list[Group]


def table(
    heads: list[str],
    estimated: Iterable[tuple[str, str, Sequence[Definition]]],
    measured: Sequence[Mapping[str, Any]],
) -> Table:
    """Make a table of metrics.

    Args:
        heads: heads of the columns.
        estimated: title, vantage and definitions of each estimator.
        measured: for each column its metrics by name, as in documents; a metric that is missing has
            no value.
    """
    groups = [
        Group(title, vantage, [_row(each, measured) for each in definitions])
        for title, vantage, definitions in estimated
        if definitions
    ]
    return Table(heads, groups)


def _row(definition: Definition, measured: Sequence[Mapping[str, Any]]) -> Row:
    found = [metrics.get(definition.name, {}) for metrics in measured]
    reasons = dict.fromkeys(each["why"] for each in found if each.get("why"))
    return Row(definition, [each.get("value") for each in found], list(reasons))
