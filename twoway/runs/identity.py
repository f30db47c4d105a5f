"""A run's identity: with the same one, captures are the same."""

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
    """Hash plan, topology, tools, backend and its modules in use.

    Expectations, warm-up and texts, which only the analysis reads, are left out.
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
    """List the file names of the kernel modules that a plan loads."""
    commands = [step["run"] for step in plan["setup"] if step.get("run")]
    return [Path(argv[1]).name for argv in commands if argv[0] == "insmod"]
