"""A bench's run: what each machine does of it, and the run's folder that all of them left."""

import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from twoway.backends.backend import Progress
from twoway.backends.host import make_native
from twoway.contract.writing import write_json
from twoway.errors import RunError
from twoway.runs.identity import modules_in
from twoway.runs.manifest import git_revision, tool_versions

# In a share's folder: written by run.py when the machine is ready, here when it has failed before.
READY = "ready"
# Whoever writes this ends a machine's part: another has failed.
CALLED_OFF = "called-off"
# What a share's folder has besides artifacts.
_OWN = ("plan.json", "manifest.json", "clock.json", "exit-status", READY, "sockets/progress.json")


def carry_out(folder: Path) -> None:
    """Carry out this machine's share of a plan, and leave a manifest of the machine.

    Args:
        folder: with plan.json; the artifacts go there.

    Raises: UsageError or RunError if it cannot.
    """

    def watch(_: Progress) -> None:
        if (folder / CALLED_OFF).exists():
            raise RunError("called off")

    try:
        native = make_native()
        native.run(folder, watch)
    finally:
        (folder / READY).touch()
    plan = json.loads((folder / "plan.json").read_text())
    machine = {
        **native.description(),
        "decisive": native.decisive(modules_in(plan)),
        "git": git_revision(),
        "tools": tool_versions(),
        "nodes": plan["nodes"],
    }
    write_json(folder / "manifest.json", machine)


@dataclass(frozen=True)
class Clock:
    """A machine's clock against that of the one who measured, which is never off itself.

    Attributes:
        handed_ns: how far ahead its programs took it to be.
        offset_ns: how far it was at the start of traffic.
        drift_ppb: how much faster it runs.
        uncertainty_ns: by how much that may be off at any time of the run.
    """

    handed_ns: int = 0
    offset_ns: int = 0
    drift_ppb: float = 0.0
    uncertainty_ns: int = 0


def clock(before: Mapping[str, int], after: Mapping[str, int], start_ns: int) -> Clock:
    """What two measurements (clock_probe.py) say of a clock while the run lasted.

    Args:
        before: the one by which the machine was told when to begin.
        after: the one at the end.
        start_ns: the start of traffic, on the same clock as the measurements' `at_ns`.
    """
    drift = (after["offset_ns"] - before["offset_ns"]) / (after["at_ns"] - before["at_ns"])
    return Clock(
        handed_ns=before["offset_ns"],
        offset_ns=before["offset_ns"] + round(drift * (start_ns - before["at_ns"])),
        drift_ppb=round(drift * 1e9, 3),
        uncertainty_ns=max(before["uncertainty_ns"], after["uncertainty_ns"]),
    )


@dataclass(frozen=True)
class Bench:
    """The backend (see backend.py) whose machines have run: their parts become a run's folder.

    Attributes:
        parts: a folder for each machine, by its name.
        times: "offset_ns", the plan's clock against the measuring machine's; "before" and "after",
            each measurement by machine.
    """

    parts: Mapping[str, Path]
    times: Mapping[str, Any]
    name: str = "bench"

    def run(self, folder: Path, on_progress: Callable[[Progress], None]) -> None:  # noqa: ARG002
        """See Backend; the traffic has been."""
        for part in self.parts.values():
            for path in sorted(part.rglob("*")):
                name = str(path.relative_to(part))
                if path.is_file() and name not in _OWN:
                    _add(path, folder / name)
        start_ns = json.loads((folder / "plan.json").read_text())["clock"]["start_ns"]
        offset_ns = self.times["offset_ns"]
        clocks: dict[str, Any] = {}
        before, after = self.times["before"], self.times["after"]
        for name, machine in self._machines.items():
            if name in before:
                of_machine = clock(before[name], after[name], start_ns + offset_ns)
            else:
                of_machine = Clock()  # that which measured
            clocks |= dict.fromkeys(machine["nodes"], vars(of_machine))
        write_json(folder / "clock.json", {"offset_ns": offset_ns, "nodes": clocks})

    @property
    def took_s(self) -> float:
        """Time between the two measurements, in which the run was."""
        ends = zip(self.times["before"].values(), self.times["after"].values(), strict=True)
        return max(((after["at_ns"] - before["at_ns"]) / 1e9 for before, after in ends), default=0)

    def description(self) -> dict[str, Any]:
        """See Backend."""
        machines = self._machines
        kernels = {
            name: ", ".join(dict.fromkeys(m["kernel"][name] for m in machines.values()))
            for name in ("release", "key")
        }
        return {
            "backend": self.name,
            "clock_source": "host",
            "kernel": kernels,
            "modules": {k: v for m in machines.values() for k, v in m["modules"].items()},
            "machines": machines,
        }

    def decisive(self, modules: Sequence[str]) -> dict[str, Any]:  # noqa: ARG002 - each has its own
        """See Backend."""
        return {name: machine["decisive"] for name, machine in self._machines.items()}

    @cached_property
    def _machines(self) -> dict[str, Any]:
        """What each machine says of itself."""
        return {
            name: json.loads((part / "manifest.json").read_text())
            for name, part in self.parts.items()
        }


def _add(path: Path, target: Path) -> None:
    """Put a machine's file beside those of the others; all have some, which become one."""
    target.parent.mkdir(parents=True, exist_ok=True)
    if not target.exists():
        shutil.copyfile(path, target)
    elif path.suffix == ".csv":
        head, rows = _table(target)
        _, more = _table(path)
        rows = sorted(rows + more, key=lambda row: int(row.partition(",")[0]))
        target.write_text("".join([*head, *rows]))
    else:
        with target.open("a") as file:
            file.write(path.read_text(errors="replace"))


def _table(path: Path) -> tuple[list[str], list[str]]:
    """A table's preamble and header, and its rows."""
    lines = path.read_text().splitlines(keepends=True)
    first = next((n for n, line in enumerate(lines) if line[0].isdigit()), len(lines))
    return lines[:first], lines[first:]
