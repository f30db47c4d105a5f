"""Plans whose content differs from their experiment's."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from support.running import write_experiment
from support.runs import kept_output, packages
from twoway.backends import uml
from twoway.contract.plan import PLAN, Command, Plan
from twoway.errors import RunError
from twoway.guest.cache import Guest
from twoway.plan.plan import build_plan
from twoway.runs.points import load_point


def plan_with(*steps: Any, experiment: str = "kalampoukas-5.2", **parts: Any) -> Plan:
    """Return an experiment's plan with other parts, or with other steps after its nodes."""
    plan = build_plan(load_point(experiment))
    setup = (plan.setup[0], *steps) if steps else plan.setup
    return plan.model_copy(update={"setup": setup, **parts})


def planned(folder: Path, document: dict[str, Any]) -> Plan:
    """Write an experiment's file and plan it."""
    return build_plan(load_point(str(write_experiment(folder, document))))


def shell(script: str, *arguments: str, program: str = "sh") -> Command:
    """Return a step that runs a script in the guest."""
    return Command(node=None, run=(program, "-c", script, *arguments))


def run_folder(folder: Path, plan: Plan) -> Path:
    """Make a run's folder with a plan."""
    folder.mkdir()
    plan.write(folder / PLAN)
    return folder


def said_in_guest(
    guest: Guest,
    folder: Path,
    script: str,
    readable: Mapping[str, Path] = MappingProxyType({}),
    decisive: Sequence[Path] = (),
) -> list[str]:
    """Run a bash script once the network is up, and nothing else; return the lines of `said`.

    They are kept by the plan, all programs of the guest, and other decisive files.

    Args:
        guest: the guest to boot.
        folder: a new folder for the run's files.
        script: the script.
        readable: more folders of the host that it may read, by their paths in the guest.
        decisive: the files in them that it reads.
    """
    plan = plan_with(shell(f"{script}\nexit 1  # that is all", program="bash"))

    def run() -> str:
        run_folder(folder, plan)
        with pytest.raises(RunError, match="bash -c"):
            uml.run(guest, folder, lambda _: None, readable=readable)
        return (folder / "said").read_text()

    programs = uml.Uml(guest).identify([path.name for path in guest.programs.glob("*.ko")])
    texts = plan.model_dump_json(), json.dumps(programs, sort_keys=True)
    contents = (path.read_bytes() for path in decisive)
    return kept_output(run, packages(), *contents, *map(str.encode, texts)).splitlines()
