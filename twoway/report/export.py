"""Exports: the time series of a run's connections in the file format of another tool."""

from functools import cache
from pathlib import Path

from capture_analysis.discovery import modules_of
from capture_analysis.errors import AnalysisError

from twoway.contract.writing import written_aside
from twoway.errors import UsageError, in_a_sentence
from twoway.measure.analysis import Analysis
from twoway.report import exports
from twoway.report.exports import Format
from twoway.report.series import run_series


@cache
def formats() -> dict[str, Format]:
    """List the formats by name: FORMAT of each module in exports/."""
    found: list[Format] = [module.FORMAT for module in modules_of(exports)]
    return {each.name: each for each in found}


def export_run(folder: Path, name: str, target: Path | None = None) -> Path:
    """Write the time series of a run's connections into a file, whole or not at all.

    Args:
        folder: a run's folder with manifest.json.
        name: the format's name.
        target: the file; the format's suffix is added to its name if missing; by default the
            experiment's id with the suffix, in `folder`.

    Returns: the file.
    Raises: AnalysisError if the run cannot be analysed; UsageError if it has no connection, or the
        target no folder.
    """
    form = formats()[name]
    with in_a_sentence(folder, AnalysisError):
        analysis = Analysis(folder)
    target = target or folder / f"{analysis.run.manifest.experiment.id}{form.suffix}"
    target = target.with_name(_with_suffix(target.name, form.suffix))
    if not target.parent.is_dir():
        raise UsageError(f"--to: {target.parent}: no such folder")
    if not analysis.run.connections:
        raise UsageError(
            f"{folder}: flows: an export has the series of each connection, and the run has none",
            "connections of programs are in the captures: `capture-analysis export` writes those",
        )
    with in_a_sentence(folder, AnalysisError):
        content = form.encode(run_series(analysis))
    try:
        with written_aside(target) as file:
            file.write(content)
    except OSError as error:
        raise UsageError(f"--to: {target}: {error.strerror}") from error
    return target


def _with_suffix(name: str, suffix: str) -> str:
    """Add the missing part of a suffix to a file's name: only .gz if it ends in .flent."""
    shared = next(n for n in range(len(suffix), -1, -1) if name.endswith(suffix[:n]))
    return name + suffix[shared:]
