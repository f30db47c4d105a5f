"""The page of a sweep: its question, figures over its axes, and a row for each point."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from os.path import relpath
from pathlib import Path

from twoway.contract.statements import label
from twoway.contract.verdicts import points_in_words
from twoway.report import pages
from twoway.report.curves import curves, measured_curves, scatters
from twoway.report.harm import HARMS, with_harm
from twoway.report.points_table import CSV, PARQUET, points_table, units_of, write_points
from twoway.report.repetitions import QUANTILES, Spread, grouped, spread, statements
from twoway.report.results import Experiment, Result

PAGE = "index.html"
TABLES = (CSV, PARQUET)
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
) -> list[Path]:
    """Write a page, points.csv and points.parquet for each sweep.

    Args:
        experiments: experiments with their runs; those without an axis get no page.
        site: the folder of results; a sweep's page is in its folder ID there.
        failed: the reason why a point has no run, by the point's id.
        metrics: families to draw first, such as goodput.
        waiting: ids of points that have not run yet; the page reloads itself.

    Returns: the pages.
    """
    return [_write(each, site, failed, metrics, waiting) for each in experiments if each.axes]


def _write(
    experiment: Experiment,
    site: Path,
    failed: Mapping[str, str],
    metrics: Sequence[str],
    waiting: Sequence[str],
) -> Path:
    harmed = with_harm({each.id: (each.manifest, each.metrics) for each in experiment.results})
    results = (replace(each, metrics=harmed[each.id][1]) for each in experiment.results)
    experiment = replace(experiment, results=tuple(results))
    folder = site / experiment.id
    folder.mkdir(exist_ok=True)

    def link(result: Result) -> str:
        page = result.folder / "report.html"
        return relpath(page if page.is_file() else result.folder, folder)

    prefix = f"{experiment.id}-"
    said = {each.id.removeprefix(prefix): each for each in curves(experiment)}
    others = [name for name in dict.fromkeys((*metrics, *_USUAL)) if name not in said]
    drawn = {
        each.id.removeprefix(prefix): each for each in measured_curves(experiment, others, link)
    }
    every = said | drawn
    figures = {name: every[name] for name in metrics if name in every} | every
    table = points_table(harmed)
    write_points(table, folder)
    pages.write(
        folder / PAGE,
        "sweep.html.j2",
        scatters(experiment, link) + list(figures.values()),
        experiment=experiment,
        link=link,
        label=label,
        points_in_words=points_in_words,
        shown=_shown(units_of(table), figures),
        failed={n: why for n, why in failed.items() if n.partition("@")[0] == experiment.id},
        waiting=[name for name in waiting if name.partition("@")[0] == experiment.id],
        tables=TABLES,
        titles=QUANTILES.values(),
        over=[*statements(experiment.results)],
        spreads=_spreads(experiment, list(_shown(units_of(table), figures))),
    )
    return folder / PAGE


def _spreads(experiment: Experiment, names: Sequence[str]) -> list[tuple[str, str, Spread]]:
    """List the spread of each metric over the repetitions of each point."""
    if not experiment.repeated:
        return []
    return [
        (point, name, found)
        for point, runs in grouped(experiment.results).items()
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
