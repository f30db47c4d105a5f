"""Finding finished runs in a folder of results."""

import re
from collections.abc import Iterator
from pathlib import Path

from twoway.contract.manifest import MANIFEST, read_manifest
from twoway.errors import UsageError

_IDENTITY = re.compile(r"[0-9a-f]{6,64}")


def finished_runs_of(experiment: Path) -> list[Path]:
    """List the folders of an experiment's or point's finished runs, the newest first."""
    found = sorted((path.parent for path in experiment.glob(f"[0-9]*/{MANIFEST}")), reverse=True)
    return [folder for folder in found if folder.suffix != ".partial"]


def finished_runs(results: Path) -> Iterator[Path]:
    """Find the folders of finished runs, by experiment, the newest of each first."""
    for experiment in sorted(results.glob("*")):
        if experiment.is_dir() and not experiment.is_symlink():
            yield from finished_runs_of(experiment)


def find_run(name: str, results: Path) -> Path:
    """Find a run by its folder, the newest of an experiment or point, or the one of an identity.

    Args:
        name: a folder, an id, or the first six digits or more of an identity.
        results: where runs are kept.

    Raises: UsageError if there is none.
    """
    for folder in (Path(name), *finished_runs_of(results / name)):
        if (folder / MANIFEST).is_file():
            return folder.resolve()
    if _IDENTITY.fullmatch(name):
        for folder in finished_runs(results):
            if _identity(folder).startswith(name):
                return folder.resolve()
    raise UsageError(
        f"{name}: neither a finished run's folder nor an experiment or identity that has one "
        f"in {results}",
        "`twoway run` makes one, `twoway runs` lists them",
    )


def _identity(folder: Path) -> str:
    try:
        return read_manifest(folder).identity
    except ValueError:
        return ""
