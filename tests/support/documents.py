"""Documents of runs' folders, held to their schemas."""

import json
from collections.abc import Iterator
from pathlib import Path

from twoway.contract.manifest import EXPERIMENT, MANIFEST, Described, Manifest
from twoway.contract.metrics import METRICS, Metrics
from twoway.contract.model import Document
from twoway.contract.plan import PLAN, Plan

DOCUMENTS: dict[str, type[Document]] = {
    PLAN: Plan,
    MANIFEST: Manifest,
    EXPERIMENT: Described,
    METRICS: Metrics,
}


def finished_runs(below: Path) -> set[Path]:
    """The folders of finished runs, however deep."""
    return {path.parent for path in below.rglob(f"[0-9]*/{MANIFEST}")}


def complaints(run: Path) -> Iterator[str]:
    """List what is wrong with the documents of a run: one that is not what its model writes."""
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
