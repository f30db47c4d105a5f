"""A run's line in a list of runs."""

from dataclasses import dataclass
from pathlib import Path

from twoway.contract.verdicts import VERDICTS, Verdicts
from twoway.manifest import read_manifest


@dataclass(frozen=True)
class RunSummary:
    """One finished run.

    Attributes:
        folder: its path below the results.
        experiment: id of its experiment, or of the point of a sweep.
        title: the experiment's title.
        run: its name, the time of its start, UTC.
        identity: runs with the same identity have the same captures.
        backend: the backend that ran it.
        kernel: the kernel's release.
        verdict: in words; empty if it has no report.
        exit_code: the report's exit code; -1 without a report.
        has_page: True if report.html exists.
    """

    folder: str
    experiment: str
    title: str
    run: str
    identity: str
    backend: str
    kernel: str
    verdict: str
    exit_code: int
    has_page: bool


def summarize(folder: Path, results: Path) -> RunSummary:
    """Read a run's line from its folder.

    Raises: ValueError with a sentence if its manifest cannot be read.
    """
    manifest = read_manifest(folder)
    try:
        verdicts = Verdicts.read(folder / VERDICTS)
        verdict, exit_code = verdicts.headline, verdicts.exit_code
    except (OSError, ValueError):  # missing, truncated or of another version
        verdict, exit_code = "", -1
    return RunSummary(
        folder=str(folder.relative_to(results)),
        experiment=folder.parent.name,
        title=manifest.experiment.title,
        run=manifest.run,
        identity=manifest.identity,
        backend=manifest.backend,
        kernel=manifest.kernel.release,
        verdict=verdict,
        exit_code=exit_code,
        has_page=(folder / "report.html").is_file(),
    )
