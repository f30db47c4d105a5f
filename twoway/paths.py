"""Paths of the checkout, or of its files in a wheel, and of the cache."""

import os
from pathlib import Path

from twoway.errors import UsageError

PACKAGE = Path(__file__).resolve().parent
# A wheel has the checkout's files here; pyproject.toml lists them.
_SHARE = PACKAGE / "share"
ROOT = _SHARE if _SHARE.is_dir() else PACKAGE.parent
# JSON Schemas that the first line of experiments and profiles names for editors.
SCHEMAS = PACKAGE / "schemas"
EXPERIMENTS = ROOT / "experiments"
PAPERS = ROOT / "papers"
TOPOLOGIES = ROOT / "topologies"
PROFILES = ROOT / "tc-profiles"
SUITES = ROOT / "suites"
KERNEL_MODULES = ROOT / "kernel-modules"
VM = ROOT / "vm"
# The guest of a Debian package, in the cache's layout. A checkout has none.
PACKAGED = ROOT / "guest"


def experiment_files(ids: str = "*") -> dict[str, Path]:
    """Find the experiments' files by id, in the folder `experiments` and its folders.

    Args:
        ids: a pattern for Path.glob, of the ids to find.

    Raises: UsageError if two files have one id.
    """
    found: dict[str, Path] = {}
    files = [*EXPERIMENTS.glob(f"{ids}.yml"), *EXPERIMENTS.glob(f"*/{ids}.yml")]
    for path in sorted(files, key=lambda path: (path.parent, path.stem)):
        other = found.setdefault(path.stem, path)
        if other != path:
            raise UsageError(
                f'{shown_path(path)}: the id "{path.stem}" is also the id of {shown_path(other)}',
                "an experiment's id is its file's name without the folder: rename one",
            )
    return found


def results() -> Path:
    """Return where runs are kept: in the checkout for a shell in it, else in the current folder."""
    packaged = PACKAGED.is_dir() or ROOT == _SHARE
    return ROOT / "results" if not packaged and Path.cwd().is_relative_to(ROOT) else Path("results")


def cache() -> Path:
    """Return the folder for builds and downloads: $XDG_CACHE_HOME/twoway.

    Raises: UsageError if neither that variable nor a home folder is set.
    """
    base = os.environ.get("XDG_CACHE_HOME")
    try:
        return (Path(base) if base else Path.home() / ".cache") / "twoway"
    except RuntimeError as error:
        raise UsageError("no home folder: set HOME or XDG_CACHE_HOME") from error


def shown_path(path: Path) -> str:
    """Return a path for errors, relative to the checkout if inside."""
    return str(path.relative_to(ROOT) if path.is_relative_to(ROOT) else path)
