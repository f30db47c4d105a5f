"""A run's identity: with the same one, captures are the same."""

import hashlib
import json

from twoway.backends.backend import Backend
from twoway.plan.plan import build_plan
from twoway.runs.manifest import tool_versions
from twoway.spec.point import Case


def identity(case: Case, backend: Backend) -> str:
    """Hash plan, topology, tools, backend and its modules in use.

    Expectations, warm-up and texts, which only the analysis reads, are left out.
    """
    plan = build_plan(case, in_kernel=backend.in_kernel)
    document = {
        "plan": plan.model_dump(mode="json"),
        "topology": case.topology_source,
        "tools": tool_versions(),
        "backend": {"name": backend.name, **backend.decisive(plan.modules)},
    }
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()
