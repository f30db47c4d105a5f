"""Analysing a run's folder: metrics.json, verdicts.json and report.html."""

from contextlib import suppress
from pathlib import Path

from capture_analysis.errors import AnalysisError
from capture_analysis.one_capture.memory import give_back

from twoway.contract.metrics import METRICS
from twoway.contract.verdicts import VERDICTS, Verdicts
from twoway.contract.writing import write_json
from twoway.errors import in_a_sentence
from twoway.manifest import FAILED, MANIFEST, without_captures
from twoway.measure.analysis import Analysis
from twoway.measure.document import compute
from twoway.measure.revision import revision
from twoway.report.figures import all_figures
from twoway.report.judging import judge_run
from twoway.report.pages import PAGE, write_report_page


def analyse_run(folder: Path, *, page: bool = True) -> Verdicts:
    """Analyse a run and write metrics, verdicts and report into its folder.

    Without `page` metrics.json and verdicts.json alone are written.

    Returns: the content of verdicts.json.
    Raises: AnalysisError if the run cannot be analysed; an earlier report is removed, unless the
        run's captures were left out, and the reason is written into the folder.
    """
    try:
        with in_a_sentence(folder, AnalysisError):
            verdicts = _analysed(folder, page=page)
    except AnalysisError as error:
        # Remove an earlier report, unless the captures were left out: it could not be made again.
        if not without_captures(folder):
            for name in (VERDICTS, METRICS, PAGE):
                (folder / name).unlink(missing_ok=True)
            with suppress(OSError):  # the error matters more
                if (folder / MANIFEST).is_file():
                    write_json(folder / FAILED, {"error": str(error)})
        raise
    (folder / FAILED).unlink(missing_ok=True)
    return verdicts


def _analysed(folder: Path, *, page: bool) -> Verdicts:
    analysis = Analysis(folder)
    metrics = compute(analysis).model_copy(update={"analysis": revision()})
    metrics.write(folder / METRICS)
    verdicts = judge_run(folder, (analysis.run.manifest, metrics))
    if page:
        manifest, figures = analysis.run.manifest, all_figures(analysis, metrics)
        del analysis  # its packets take more memory than the page
        give_back()
        write_report_page(manifest, metrics, verdicts, figures, folder)
    verdicts.write(folder / VERDICTS)  # last: its presence means that the page is complete
    return verdicts


def rejudge(folder: Path) -> Verdicts:
    """Judge a measured run again; rewrite documents that are out of date.

    The report is drawn again if it shows other verdicts; without captures it is removed.

    Raises: AnalysisError if the run cannot be judged.
    """
    with in_a_sentence(folder, AnalysisError):
        verdicts = judge_run(folder)
    try:
        if Verdicts.read(folder / VERDICTS) == verdicts:
            return verdicts
    except (OSError, ValueError):  # missing, truncated or of another version
        pass
    if (folder / PAGE).is_file() and not without_captures(folder):
        return analyse_run(folder)
    (folder / PAGE).unlink(missing_ok=True)
    verdicts.write(folder / VERDICTS)
    return verdicts
