"""report.html of a run: a self-contained page with zoomable figures."""

from pathlib import Path

from capture_analysis.pictures.figure import Figure

from twoway.contract.metrics import Metrics
from twoway.contract.verdicts import Verdicts
from twoway.measure.analysis import Analysis
from twoway.report import templated
from twoway.report.map import topology_svg
from twoway.report.papers import find_paper


def write_page(
    analysis: Analysis, document: Metrics, verdicts: Verdicts, figures: list[Figure], folder: Path
) -> None:
    """Write report.html, whole or not at all."""
    manifest = analysis.run.manifest
    templated.write(
        folder / "report.html",
        "report.html.j2",
        figures,
        document=document,
        verdicts=verdicts,
        manifest=manifest,
        experiment=manifest.experiment,
        find_paper=find_paper,
        topology=topology_svg(manifest),
    )
