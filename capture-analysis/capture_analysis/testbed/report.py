"""From a run's folder to metrics.json, figures and report.html."""

from pathlib import Path
from typing import Any

from capture_analysis.testbed import metrics
from capture_analysis.testbed.analysis import Analysis
from capture_analysis.testbed.figures import all_figures


def analyse_run(folder: Path) -> dict[str, Any]:
    """Analyse a run and write everything derived from it beside it.

    Args:
        folder: a run's folder with manifest.json.

    Returns: the content of metrics.json, with "pass" for the verdict as a whole.
    Raises: AnalysisError if the run cannot be analysed.
    """
    # Imported here: a program that only wants numbers need not wait for drawing libraries.
    from capture_analysis.pictures import plots  # noqa: PLC0415 - see the line above
    from capture_analysis.testbed import page  # noqa: PLC0415 - see the line above

    analysis = Analysis(folder)
    document = metrics.compute(analysis)
    metrics.write(folder, document)
    figures = all_figures(analysis)
    plots.save_all(figures, folder / "figures")
    page.write_page(analysis, document, figures, folder)
    return document
