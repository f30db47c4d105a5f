"""A run's line in a list of runs."""

from dataclasses import dataclass
from pathlib import Path

from twoway.contract.manifest import read_manifest
from twoway.contract.verdicts import VERDICTS, Verdicts


@dataclass(frozen=True)
class RunSummary:
    """One finished run.

    Attributes:
        folder: where it is, below the results.
        experiment: id of its experiment, or of the point of a sweep.
        title: the experiment's.
        run: its name, which is the time of its start, UTC.
        identity: runs with the same one have the same captures.
        backend: where it ran.
        kernel: the release.
        verdict: in words; empty if it has no report.
        exit_code: that of its report; -1 if it has none.
        has_page: whether report.html is there.
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
    except (OSError, ValueError):  # missing, cut short or another version's
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
