"""Finding finished runs in a folder of results."""

import re
from collections.abc import Iterator
from pathlib import Path

from twoway.errors import UsageError
from twoway.manifest import MANIFEST, read_manifest
from twoway.runs.share_file import SUFFIX, shared_runs

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
    """Find a run by folder, by experiment or point (the newest), or by identity.

    Args:
        name: a run's folder, an experiment's or point's folder in the results, an experiment's id
            or file, or a row of a suite, with "@" and the values of a point in any order, or the
            first six digits or more of an identity.
        results: where runs are kept.

    Raises: UsageError if there is none, or if only the experiment's points have runs.
    """
    points, asked = _points(name, results), _id(name, results)
    ran = points[0] if len(points) == 1 and "@" in asked else results / asked
    for folder in (Path(name), *finished_runs_of(ran)):
        if (folder / MANIFEST).is_file():
            return folder.resolve()
    if _IDENTITY.fullmatch(name):
        for folder in finished_runs(results):
            if _identity(folder).startswith(name):
                return folder.resolve()
    if points:
        raise UsageError(
            f"{name}: {len(points)} of its points have finished runs: name one",
            f"for example {points[0].name}",
        )
    raise UsageError(
        f"{name}: neither a finished run's folder nor an experiment or identity that has one "
        f"in {results}",
        "`twoway run` makes one, `twoway runs` lists them",
    )


def find_runs(name: str, results: Path) -> list[Path]:
    """Find the run of a name; for a sweep, or values of some axes, the newest run of each point.

    Args:
        name: as for find_run(), the id of an experiment with points, or a file that `twoway share`
            made.
        results: where runs are kept.

    Returns: folders, points in the order of their names, numbers by their size.
    Raises: UsageError if there is none; ArchiveError if the file holds no sound runs.
    """
    if Path(name).suffix == SUFFIX and Path(name).is_file():
        return sorted(shared_runs(Path(name)), key=lambda run: _in_order(run.parent))
    if finished_runs_of(results / _id(name, results)) or not (points := _points(name, results)):
        return [find_run(name, results)]
    return [finished_runs_of(point)[0].resolve() for point in points]


def _points(name: str, results: Path) -> list[Path]:
    """List the folders of the points with a name's values that have finished runs, in order."""
    experiment, _, asked = _id(name, results).partition("@")
    named = (path for path in results.glob("*@*") if path.name.startswith(f"{experiment}@"))
    values = {value for value in asked.split(",") if value}
    chosen = (path for path in named if values <= {*path.name.partition("@")[2].split(",")})
    return sorted((point for point in chosen if finished_runs_of(point)), key=_in_order)


def _id(name: str, results: Path) -> str:
    """Replace an experiment's file or folder, or a row of a suite, by its id; a point's stays."""
    if Path(name).is_dir() and Path(name).resolve().parent == results.resolve():
        return Path(name).name
    experiment, at, point = name.partition("@")
    file = Path(experiment)
    suite, row = Path(file.parent.name), file.name
    if file.suffix in {".yml", ".yaml"}:
        experiment = file.stem
    elif suite.name and (suite.suffix in {".yml", ".yaml"} or file.parent == suite):
        experiment = f"{suite.stem if suite.suffix else suite}-{row}"
    return experiment + at + point


def _in_order(path: Path) -> list[tuple[float, str]]:
    parts = re.split(r"(\d+(?:\.\d+)?)", path.name)
    return [(float(part), "") if index % 2 else (0, part) for index, part in enumerate(parts)]


def _identity(folder: Path) -> str:
    try:
        return read_manifest(folder).identity
    except ValueError:
        return ""
