"""A sweep as a table of Arrow: one row per point, tidy, with units."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from twoway.contract.metrics import Metrics
from twoway.contract.statements import axis_number, label
from twoway.contract.writing import written_aside
from twoway.manifest import Manifest

CSV, PARQUET = "points.csv", "points.parquet"


def points_table(
    runs: Mapping[str, tuple[Manifest, Metrics]], names: Sequence[str] = ()
) -> pa.Table:
    """Make the table; its columns are `point`, the axes, and metrics.

    Args:
        runs: manifest and metrics by the point's name.
        names: the metrics' names; by default all.

    Returns: a metric's column has its unit in the field's metadata, and null for undefined values.
    """
    units = {n: m.unit for _, metrics in runs.values() for n, m in metrics.metrics.items()}
    axes = dict.fromkeys(axis for manifest, _ in runs.values() for axis in manifest.point)
    fields = [pa.field("point", pa.string())]
    columns: list[Any] = [pa.array(list(runs))]
    for axis in axes:
        columns.append(_axis([manifest.point.get(axis) for manifest, _ in runs.values()]))
        fields.append(pa.field(axis, columns[-1].type))
    for name in names or units:
        found = [metrics.metrics.get(name) for _, metrics in runs.values()]
        columns.append(pa.array([each.value if each else None for each in found], pa.float64()))
        fields.append(pa.field(name, pa.float64(), metadata={"unit": units[name]}))
    return pa.table(columns, schema=pa.schema(fields))


def _axis(values: list[Any]) -> pa.Array:
    """Make an axis's column: numbers if all values or their names are numbers, else words."""
    if all(isinstance(value, int) and not isinstance(value, bool) for value in values):
        return pa.array(values)
    numbers = [None if isinstance(value, list) else axis_number(value) for value in values]
    if None not in numbers:
        return pa.array(numbers)
    return pa.array([label(value) for value in values])


def units_of(table: pa.Table) -> dict[str, str]:
    """List the metrics among a table's columns, with their units."""
    return {f.name: f.metadata[b"unit"].decode() for f in table.schema if f.metadata}


def write_points(table: pa.Table, folder: Path) -> None:
    """Write the table as CSV, with units in the header, and as Parquet."""
    units = units_of(table)
    titles = [f"{name} [{units[name]}]" if name in units else name for name in table.column_names]
    with written_aside(folder / CSV) as file:
        pyarrow.csv.write_csv(table.rename_columns(titles), file)
    with written_aside(folder / PARQUET) as file:
        pyarrow.parquet.write_table(table, file)
