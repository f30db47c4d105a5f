"""A run's identity: runs with the same identity have the same captures."""

import hashlib
import json
from collections.abc import Iterator
from typing import Any

from twoway.backends.backend import Backend
from twoway.contract.plan import Plan
from twoway.description.point import Point
from twoway.plan.plan import build_plan
from twoway.runs.manifest import tool_versions


def identity(point: Point, backend: Backend, plan: Plan | None = None) -> str:
    """Hash plan, topology, tools, backend and its modules in use.

    Statements, warm-up and texts, which only the analysis reads, do not count.
    """
    return _hash(_document(point, backend, plan or build_plan(point, in_kernel=backend.in_kernel)))


def identity_parts(point: Point, backend: Backend) -> dict[str, str]:
    """List the parts of a run's identity by name, the long ones as hashes."""
    document = _document(point, backend, build_plan(point, in_kernel=backend.in_kernel))
    return dict(_parts({**document, **{key: _hash(document[key]) for key in ("plan", "topology")}}))


def _document(point: Point, backend: Backend, plan: Plan) -> dict[str, Any]:
    return {
        "plan": plan.model_dump(mode="json"),
        "topology": point.topology_source,
        "tools": tool_versions(),
        "backend": {"name": backend.name, **backend.identify(plan.modules)},
    }


def _hash(document: Any) -> str:
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()


def _parts(document: dict[str, Any], path: str = "") -> Iterator[tuple[str, str]]:
    for key, value in document.items():
        if isinstance(value, dict):
            yield from _parts(value, f"{path}{key}.")
        else:
            yield f"{path}{key}", str(value)
