"""report.html of a run: one self-contained page with zoomable figures."""

from pathlib import Path
from typing import Any

from capture_analysis.pages import page_template
from capture_analysis.pictures.figure import Figure
from capture_analysis.testbed.analysis import Analysis
from capture_analysis.testbed.expectation import NOTHING_TOLD, nothing_told
from capture_analysis.testbed.map import topology_svg


def write_page(
    analysis: Analysis, document: dict[str, Any], figures: list[Figure], folder: Path
) -> None:
    """Write report.html, whole or not at all."""
    manifest = analysis.run.manifest
    page_template.write(
        folder / "report.html",
        "report.html.j2",
        figures,
        document=document,
        not_told=NOTHING_TOLD if nothing_told(document["expect"]) else "",
        manifest=manifest,
        experiment=manifest["experiment"],
        topology=topology_svg(manifest),
    )
