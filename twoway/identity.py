"""What decides the bytes of a run: two runs of one identity have the same captures."""

import hashlib
import json
from functools import cache
from pathlib import Path
from typing import Any

from twoway.build import Guest
from twoway.case import Case
from twoway.manifest import tool_versions
from twoway.paths import TOPOLOGIES, VM
from twoway.plan import build_plan


def identity(case: Case, guest: Guest) -> str:
    """A hash over the plan, the kernel, its programs, the modules in use and the tools.

    What only the analysis reads (expectations, warm-up, texts) is not in it.
    """
    plan = build_plan(case)
    loaded = [Path(argv[1]) for argv in _commands(plan) if argv[0] == "insmod"]
    document = {
        "plan": plan,
        "topology": (TOPOLOGIES / f"{case.experiment.topology.name}.py").read_text("utf-8"),
        "kernel": guest.kernel.parent.name,
        "programs": _program_hashes(guest.programs),
        "modules": {path.name: _sha256(guest.programs / path.name) for path in loaded},
        "tools": tool_versions(),
    }
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()


def _commands(plan: dict[str, Any]) -> list[list[str]]:
    return [step["run"] for step in plan["setup"] if step.get("run")]


@cache
def _program_hashes(programs: Path) -> dict[str, str]:
    """Of what every guest runs: its programs, modules apart, and what carries the plan out."""
    paths = [p for p in sorted(programs.iterdir()) if p.suffix != ".ko"]
    return {path.name: _sha256(path) for path in [*paths, VM / "guest/run.py"] if path.is_file()}


@cache
def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
