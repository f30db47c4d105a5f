"""Analysing a run's folder: metrics.json, figures and report.html."""

import hashlib
from functools import cache
from pathlib import Path

import capture_analysis

from twoway.contract.metrics import METRICS, Metrics
from twoway.measure.analysis import Analysis
from twoway.measure.document import compute


def analyse_run(folder: Path, *, pictures: bool = True) -> Metrics:
    """Analyse a run and write metrics, figures and report into its folder.

    Args:
        folder: a run's folder with manifest.json.
        pictures: False writes metrics.json alone.

    Returns: the content of metrics.json.
    Raises: AnalysisError if the run cannot be analysed.
    """
    analysis = Analysis(folder)
    document = compute(analysis).model_copy(update={"analysis": revision()})
    if not pictures:
        document.write(folder / METRICS)
        return document
    # Imported here, so that a program that wants only numbers does not load drawing libraries.
    from capture_analysis.pictures import plots  # noqa: PLC0415 - a drawing library

    from twoway.report import page  # noqa: PLC0415 - imports a drawing library
    from twoway.report.figures import all_figures  # noqa: PLC0415 - imports a drawing library

    figures = all_figures(analysis)
    plots.save_all(figures, folder / "figures")
    page.write_page(analysis, document, figures, folder)
    document.write(folder / METRICS)  # last: its presence means that figures and page are complete
    return document


@cache
def revision() -> str:
    """Identify the code that measures and judges.

    Analyses of two revisions may differ.
    """
    mine = Path(__file__).parents[1]
    folders = [mine / name for name in ("contract", "theory", "measure", "report")]
    return code_revision(Path(capture_analysis.__file__).parent, *folders)


def code_revision(*folders: Path) -> str:
    """Hash the Python code and templates in some folders, as they are now.

    C is left out: tests prove that it gives the results of the Python code it replaces.
    """
    digest = hashlib.sha256()
    found = (p for folder in folders for kind in ("py", "j2") for p in folder.rglob(f"*.{kind}"))
    for path in sorted(found):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
