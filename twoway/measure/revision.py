"""Comparing a run's metrics with those of the present code."""

import hashlib
from functools import cache
from pathlib import Path

import capture_analysis

from twoway.contract.metrics import METRICS, Metrics
from twoway.manifest import Manifest


def is_measured(folder: Path, manifest: Manifest) -> bool:
    """Tell whether a run's metrics.json exists and is up to date."""
    try:
        metrics = Metrics.read(folder / METRICS)
    except (OSError, ValueError):  # missing, truncated or of another version
        return False
    return is_current(metrics, manifest)


def is_current(metrics: Metrics, manifest: Manifest) -> bool:
    """Tell whether metrics belong to this run and to the present code."""
    return (metrics.analysis, metrics.measured_sha256) == (revision(), manifest.measured_sha256)


@cache
def revision() -> str:
    """Identify the code that measures.

    Metrics of two revisions may differ.
    """
    mine = Path(__file__).parents[1]
    folders = [mine / name for name in ("contract", "theory", "measure")]
    return code_revision(Path(capture_analysis.__file__).parent, *folders)


def code_revision(*folders: Path) -> str:
    """Hash the present Python code and templates in some folders.

    The order is that of the arguments, then of names: on a lab host the folders have other paths. C
    is left out: tests prove that it gives the results of the Python code it replaces.
    """
    digest = hashlib.sha256()
    for folder in folders:
        for path in sorted(p for kind in ("py", "j2") for p in folder.rglob(f"*.{kind}")):
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
