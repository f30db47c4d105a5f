"""What decides the bytes of a run: two runs of one identity have the same captures."""

import hashlib
import json
from pathlib import Path
from typing import Any

from twoway.backends.backend import Backend
from twoway.paths import TOPOLOGIES
from twoway.plan.plan import build_plan
from twoway.runs.manifest import tool_versions
from twoway.spec.point import Case


def identity(case: Case, backend: Backend) -> str:
    """A hash over the plan, the topology, the tools, and what the backend is and loads.

    What only the analysis reads (expectations, warm-up, texts) is not in it.
    """
    plan = build_plan(case)
    document = {
        "plan": plan,
        "topology": (TOPOLOGIES / f"{case.experiment.topology.name}.py").read_text("utf-8"),
        "tools": tool_versions(),
        "backend": {"name": backend.name, **backend.decisive(modules_in(plan))},
    }
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()


def modules_in(plan: dict[str, Any]) -> list[str]:
    """File names of the kernel modules that a plan loads."""
    commands = [step["run"] for step in plan["setup"] if step.get("run")]
    return [Path(argv[1]).name for argv in commands if argv[0] == "insmod"]
