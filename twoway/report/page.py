"""report.html of a run: a self-contained page with zoomable figures."""

from pathlib import Path

from capture_analysis.pictures.figure import Figure

from twoway.contract.metrics import Metrics
from twoway.contract.verdicts import Verdicts
from twoway.measure.analysis import Analysis
from twoway.report import templated
from twoway.report.connections import checks_of, metrics_of, shown_names, spreads
from twoway.report.map import topology_svg
from twoway.report.papers import find_paper

_TEMPLATE = "report.html.j2"


def prepare() -> None:
    """Load and compile what every page takes."""
    templated.prepare(_TEMPLATE)


def write_page(
    analysis: Analysis, document: Metrics, verdicts: Verdicts, figures: list[Figure], folder: Path
) -> None:
    """Write report.html, whole or not at all."""
    manifest = analysis.run.manifest
    shown = shown_names(manifest.connections, document)
    hidden = [each.name for each in manifest.connections if each.name not in shown]
    left_out = metrics_of(hidden)
    templated.write(
        folder / "report.html",
        _TEMPLATE,
        figures,
        document=document,
        verdicts=verdicts,
        manifest=manifest,
        experiment=manifest.experiment,
        find_paper=find_paper,
        topology=topology_svg(manifest),
        shown=shown,
        hidden=hidden,
        metrics={name: m for name, m in document.metrics.items() if name not in left_out},
        spreads=spreads(manifest.connections, document) if hidden else [],
        checks=checks_of(shown, manifest.connections, document.fidelity),
    )
