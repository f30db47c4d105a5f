"""Pages from this package's templates: for a run, for all runs, for a comparison.

They are self-contained, with figures that zoom, and are written whole or not at all.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from capture_analysis.definition import Definition
from capture_analysis.pages import page_template
from capture_analysis.pictures.figure import Figure, Line

from twoway.contract.comparison import Comparison
from twoway.contract.expression import with_derived
from twoway.contract.metrics import METRICS, Metric, Metrics
from twoway.contract.statements import in_words
from twoway.contract.verdicts import Verdicts
from twoway.contract.writing import make_folder
from twoway.manifest import Manifest
from twoway.measure.analysis import Analysis
from twoway.measure.registry import definitions
from twoway.report.connections import checks_of, metrics_of, shown_names, spreads
from twoway.report.figures import all_figures
from twoway.report.flow_table import flow_table
from twoway.report.papers import find_paper
from twoway.report.results import RunSummary
from twoway.report.run_answer import answer, hero_first
from twoway.report.topology_drawing import topology_svg

_PACKAGE = "twoway.report"
_FILTERS: dict[str, Callable[..., str]] = {"in_words": in_words}
_REPORT = "report.html.j2"
PAGE = "report.html"
# Report figures, by id, that stay readable with one line for each run.
_OVERLAID = ("queues", "goodput", "cwnd", "rtt")
_MOST_PICTURES = 24


def prepare() -> None:
    """Load and compile everything that every report needs, ahead of time."""
    page_template.compile_template(_REPORT, _PACKAGE, _FILTERS)


def page_of(run: Path) -> Path:
    """Return a run's page, or its folder if it has none."""
    return run / PAGE if (run / PAGE).is_file() else run


def write(path: Path, template: str, figures: Sequence[Figure], **context: Any) -> None:
    """Write a page from a template of this package (see pages.page_template)."""
    page_template.write(path, template, figures, package=_PACKAGE, filters=_FILTERS, **context)


def write_report_page(
    manifest: Manifest, document: Metrics, verdicts: Verdicts, figures: list[Figure], folder: Path
) -> None:
    """Write a run's page, whole or not at all."""
    shown = shown_names(manifest.connections, document)
    hidden = [each.name for each in manifest.connections if each.name not in shown]
    left_out = metrics_of(hidden)
    metrics = {name: m for name, m in document.metrics.items() if name not in left_out}
    write(
        folder / PAGE,
        _REPORT,
        hero_first(figures, verdicts),
        answer=answer(manifest, document),
        flows="\n".join(flow_table(manifest, document)),
        document=document,
        verdicts=verdicts,
        manifest=manifest,
        experiment=manifest.experiment,
        find_paper=find_paper,
        topology=topology_svg(manifest),
        shown=shown,
        hidden=hidden,
        metrics=metrics,
        families=_families(metrics, manifest),
        definition_of=lambda name: _definition_of(name, manifest, metrics),
        reasons=with_derived(document.metrics, manifest.experiment.metrics, manifest.point)[1],
        spreads=spreads(manifest.connections, document) if hidden else [],
        checks=checks_of(shown, manifest.connections, document.fidelity),
    )


def _families(
    metrics: Mapping[str, Metric], manifest: Manifest
) -> dict[Definition, dict[str, Metric]]:
    """Group metrics by definition: the values of each, by their place, such as a connection."""
    found: dict[Definition, dict[str, Metric]] = {}
    for name, metric in metrics.items():
        if definition := _definition_of(name, manifest, metrics):
            found.setdefault(definition, {})[name.partition(".")[2]] = metric
    return found


def _definition_of(
    name: str, manifest: Manifest, metrics: Mapping[str, Metric]
) -> Definition | None:
    if derived := manifest.experiment.metrics.get(name):
        words = derived.meaning or derived.formula
        return Definition(name, metrics[name].unit, words, derived.formula, least=-math.inf)
    return definitions().get(name.partition(".")[0])


def write_runs_page(runs: Sequence[RunSummary], path: Path) -> None:
    """Write a page that lists runs, with a field that filters them."""
    write(path, "runs.html.j2", [], runs=runs)


def write_comparison_page(document: Comparison, folders: Sequence[Path], path: Path) -> None:
    """Write the page of a comparison, whole or not at all."""
    drawn = [
        {f.id: f for f in all_figures(Analysis(folder), Metrics.read(folder / METRICS))}
        for folder in folders
        if not document.without_captures
    ]
    overlaid = [picture for kind in _OVERLAID if drawn for picture in _overlay(kind, drawn)]
    make_folder(path.parent)
    write(
        path,
        "comparison.html.j2",
        overlaid[:_MOST_PICTURES],
        document=document,
        left_out=len(overlaid[_MOST_PICTURES:]),
    )


def write_why_page(answer: Any, path: Path) -> None:
    """Write the page of the events that a metric depends on (sweeps/why.py)."""
    effects = [event.effect for event in answer.events if event.effect is not None]
    numbers = np.arange(1, len(effects) + 1, dtype=float)
    bars = Line("effect", numbers, np.array(effects, dtype=float), "bars")
    unit = f", {answer.unit}" if answer.unit != "1" else ""
    caption = f"The change of {answer.metric} without each event, by its number in the table."
    figure = Figure(
        "effects", "Effect of each event", caption, "event", f"{answer.metric}{unit}", [bars]
    )
    write(path, "why.html.j2", [figure] if effects else [], answer=answer)


def write_turning_page(answer: Any, path: Path) -> None:
    """Write the page of a metric over the time at which a parameter changes (sweeps/turning.py)."""
    times, values = np.array(answer.curve, dtype=float).T
    unit = f", {answer.unit}" if answer.unit != "1" else ""
    caption = f"{answer.metric} if {answer.parameter} begins at a time; crosses: the largest step."
    step = np.isin(times, answer.step)
    figure = Figure(
        "turning",
        f"Until when {answer.parameter} decides",
        caption,
        "time of the change, s",
        f"{answer.metric}{unit}",
        [
            Line("the run with the change", times, values, "marked"),
            Line("the largest step", times[step], values[step], "crosses", 1),
        ],
    )
    write(path, "turning.html.j2", [figure], answer=answer)


def _overlay(kind: str, runs: Sequence[dict[str, Figure]]) -> Iterator[Figure]:
    """Draw each line of a picture that all runs have, once for each run."""
    figures = [run[kind] for run in runs if kind in run]
    if len(figures) < len(runs):
        return
    lines = [{line.name: line for line in f.lines if line.style != "dashed"} for f in figures]
    for name in lines[0]:
        same = [of.get(name) for of in lines]
        if all(line is not None and len(line.x) for line in same):
            yield replace(
                figures[0],
                id=f"{kind}-{name}".replace(" ", "-").replace(":", ""),
                title=f"{figures[0].title}: {name}",
                lines=[
                    replace(line, name=str(number), colour=number)
                    for number, line in enumerate(same)
                    if line is not None
                ],
            )
