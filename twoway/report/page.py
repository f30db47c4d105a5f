"""report.html of a run: a self-contained page with zoomable figures."""

from pathlib import Path

from capture_analysis.pictures.figure import Figure

from twoway.contract.metrics import Metrics
from twoway.contract.verdict import NOTHING_TOLD, nothing_told
from twoway.measure.analysis import Analysis
from twoway.report import templated
from twoway.report.map import topology_svg


def write_page(analysis: Analysis, document: Metrics, figures: list[Figure], folder: Path) -> None:
    """Write report.html, whole or not at all."""
    manifest = analysis.run.manifest
    templated.write(
        folder / "report.html",
        "report.html.j2",
        figures,
        document=document,
        not_told=NOTHING_TOLD if nothing_told(document.expect) else "",
        manifest=manifest,
        experiment=manifest.experiment,
        topology=topology_svg(manifest),
    )
