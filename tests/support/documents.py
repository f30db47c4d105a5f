"""Checking documents of runs' folders against their schemas."""

import json
from collections.abc import Iterator
from pathlib import Path

from twoway.contract.metrics import METRICS, Metrics
from twoway.contract.model import Document
from twoway.contract.plan import PLAN, Plan
from twoway.manifest import EXPERIMENT, MANIFEST, Described, Manifest

DOCUMENTS: dict[str, type[Document]] = {
    PLAN: Plan,
    MANIFEST: Manifest,
    EXPERIMENT: Described,
    METRICS: Metrics,
}


def finished_runs(below: Path) -> set[Path]:
    """Return the folders of finished runs, at any depth."""
    return {path.parent for path in below.rglob(f"[0-9]*/{MANIFEST}")}


def complaints(run: Path) -> Iterator[str]:
    """List how a run's documents differ from the output of their models."""
    for name, model in DOCUMENTS.items():
        path = run / name
        if not path.exists():
            if name in (PLAN, MANIFEST):
                yield f"{path}: missing"
            continue
        try:
            document = model.read(path)
        except ValueError as error:
            yield str(error)
            continue
        if json.loads(document.model_dump_json()) != json.loads(path.read_bytes()):
            yield f"{path}: not as {model.__name__} writes it"
