"""The page of a sweep: its question, figures over its axes, and a row for each point."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from os.path import relpath
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
from capture_analysis.pictures.figure import Figure

from twoway.contract.expression import Derived, with_derived
from twoway.contract.metrics import Metrics
from twoway.contract.statements import axis_number, label
from twoway.contract.verdicts import points_in_words
from twoway.contract.writing import written_aside
from twoway.manifest import Manifest
from twoway.report import pages
from twoway.report.curves import curves, measured_curves, scatters
from twoway.report.flow_groups import metrics_of, with_groups
from twoway.report.harm import HARMS, with_harm
from twoway.report.repetitions import group_runs, statements
from twoway.report.results import Experiment, Result
from twoway.report.statistics import Spread, spread
from twoway.report.sweep_answer import answer_of, answer_tables

PAGE = "index.html"
TABLES = ("points.csv", "points.parquet")
# Families of metrics that every sweep draws; families with statements have figures of their own.
_USUAL = (
    "goodput",
    "utilisation",
    "retransmitted",
    "queue_mean",
    "rtt_median",
    "rtt_p95",
    "datagram_loss",
    "datagram_delay",
    *(harm.definition.name for harm in HARMS),
)


def write_sweep_pages(
    experiments: Iterable[Experiment],
    site: Path,
    failed: Mapping[str, str],
    metrics: Sequence[str] = (),
    waiting: Sequence[str] = (),
    *,
    derived: Mapping[str, Derived] = MappingProxyType({}),
) -> list[Path]:
    """Write a page, points.csv and points.parquet for each sweep.

    Args:
        experiments: experiments with their runs; those without an axis get no page.
        site: the folder of results; a sweep's page is in its folder ID there.
        failed: the reason why a point has no run, by the point's id.
        metrics: families to draw first, such as goodput.
        waiting: ids of points that have not run yet; the page reloads itself.
        derived: more metrics, computed from those of the runs.

    Returns: the pages.
    """
    return [
        _write(derive(each, derived), site, failed, metrics, waiting)
        for each in experiments
        if each.axes
    ]


def derive(experiment: Experiment, derived: Mapping[str, Derived]) -> Experiment:
    """Add metrics of a sweep to those of its runs: derived ones, harm, and means of groups."""
    with_more, reasons = {}, {}
    for each in experiment.results:
        asked = {**each.manifest.experiment.metrics, **derived}
        every, reasons[each.id] = with_derived(each.metrics.metrics, asked, each.point)
        with_more[each.id] = each.manifest, each.metrics.model_copy(update={"metrics": every})
    harmed = with_harm(with_more)
    results = (
        replace(
            each,
            metrics=with_groups(harmed[each.id][1], each.manifest.connections),
            reasons=reasons[each.id],
        )
        for each in experiment.results
    )
    return replace(experiment, results=tuple(results))


def asked_of(experiment: Experiment, metrics: Sequence[str]) -> list[str]:
    """List the metrics that a sweep answers for: the given ones, else those its file derives.

    A sweep of programs alone, whose flows no table has, answers for those of its findings.
    """
    found, one = [*(metrics or experiment.said.metrics)], experiment.results[0].manifest
    if found or one.connections or one.datagrams:
        return found
    rows = (row for result in experiment.results for row in result.verdicts.findings)
    return [*dict.fromkeys(row.metric for row in rows)]


def _write(
    experiment: Experiment,
    site: Path,
    failed: Mapping[str, str],
    metrics: Sequence[str],
    waiting: Sequence[str],
) -> Path:
    metrics = asked_of(experiment, metrics)
    folder = site / experiment.id
    folder.mkdir(exist_ok=True)

    def link(result: Result) -> str:
        return relpath(pages.page_of(result.folder), folder)

    prefix = f"{experiment.id}-"
    said = {each.id.removeprefix(prefix): each for each in curves(experiment)}
    others = [name for name in dict.fromkeys((*metrics, *_USUAL)) if name not in said]
    drawn = {
        each.id.removeprefix(prefix): each for each in measured_curves(experiment, others, link)
    }
    every = said | drawn
    figures = {name: every[name] for name in metrics if name in every} | every
    answer = answer_of(experiment, metrics or _defined(experiment, next(iter(figures), "")))
    table = points_table({each.id: (each.manifest, each.metrics) for each in experiment.results})
    write_points(table, folder)
    pages.write(
        folder / PAGE,
        "sweep.html.j2",
        _once(scatters(experiment, link) + list(figures.values())),
        experiment=experiment,
        link=link,
        label=label,
        points_in_words=points_in_words,
        shown=_shown(units_of(table), figures),
        failed={n: why for n, why in failed.items() if n.partition("@")[0] == experiment.id},
        waiting=[name for name in waiting if name.partition("@")[0] == experiment.id],
        tables=TABLES,
        answer=answer,
        answer_tables=answer_tables(answer),
        over=[*statements(experiment.results)],
        spreads=_spreads(experiment, list(_shown(units_of(table), figures))),
    )
    return folder / PAGE


def _once(figures: list[Figure]) -> list[Figure]:
    """Leave out captions that repeat the one before."""
    before = ["", *(each.caption for each in figures)]
    return [
        replace(each, caption="") if each.caption == above else each
        for each, above in zip(figures, before, strict=False)
    ]


def _defined(experiment: Experiment, family: str) -> list[str]:
    """List the metrics of a family that any run has: the answer where none is asked for."""
    return [
        *dict.fromkeys(
            name
            for each in experiment.results
            for name, found in metrics_of(each.metrics, family).items()
            if found.value is not None
        )
    ]


def _spreads(experiment: Experiment, names: Sequence[str]) -> list[tuple[str, str, Spread]]:
    """List the spread of each metric over the repetitions of each point."""
    if not experiment.repeated:
        return []
    return [
        (point, name, found)
        for point, runs in group_runs(experiment.results).items()
        for name in names
        if (found := spread(m.value for r in runs if (m := r.metrics.metrics.get(name))))
    ]


def _shown(units: Mapping[str, str], families: Iterable[str]) -> dict[str, str]:
    """List the metrics of the families to draw, with units, in the figures' order."""
    return {
        name: unit
        for family in families
        for name, unit in units.items()
        if name.partition(".")[0] == family
    }


def points_table(
    runs: Mapping[str, tuple[Manifest, Metrics]], names: Sequence[str] = ()
) -> pa.Table:
    """Make a tidy table of a sweep, a row a point: `point`, the axes, and all or some metrics.

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
    with written_aside(folder / TABLES[0]) as file:
        pyarrow.csv.write_csv(table.rename_columns(titles), file)
    with written_aside(folder / TABLES[1]) as file:
        pyarrow.parquet.write_table(table, file)
