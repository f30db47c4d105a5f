"""Multi-host runs: carry out a share, merge all hosts' artifacts."""

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from twoway.backends.backend import Progress
from twoway.backends.native import make_native
from twoway.contract.plan import PLAN, read_plan
from twoway.contract.writing import write_json
from twoway.errors import RunError
from twoway.manifest import CLOCKS, MACHINE, Clocks, HostClock, Kernel, Machine, Machines
from twoway.runs.manifest import git_revision, tool_versions

# File in a share's folder: run.py writes it when the host is ready, and carry_out() on failure, so
# that no host waits for this one.
READY = "ready"
# File in a share's folder that ends the host's share: the playbook writes it if another host fails.
CALLED_OFF = "called-off"
# The files of a share's folder that are not merged into the run.
_NOT_MERGED = (PLAN, MACHINE, CLOCKS, "exit-status", READY, "sockets/progress.json")


def carry_out(folder: Path) -> None:
    """Carry out this host's share, a folder with plan.json, and write machine.json.

    Raises: UsageError if this host cannot run experiments; RunError if the share failed.
    """

    def watch(_: Progress) -> None:
        if (folder / CALLED_OFF).exists():
            raise RunError("called off")

    try:
        plan = read_plan(folder)
        native = make_native()
        native.run(folder, watch)
    finally:
        (folder / READY).touch()
    Machine(
        **dict(native.description()),
        decisive=native.identify(plan.modules),
        git=git_revision(),
        tools=tool_versions(),
        nodes=plan.share.nodes if plan.share else (),
    ).write(folder / MACHINE)


def clock(before: Mapping[str, int], after: Mapping[str, int], start_ns: int) -> HostClock:
    """Compute a host's offset and drift from two measurements (clock_probe.Measured).

    The host's start was computed from the first; the start of traffic is on the same clock.
    """
    drift = (after["offset_ns"] - before["offset_ns"]) / (after["at_ns"] - before["at_ns"])
    return HostClock(
        handed_ns=before["offset_ns"],
        offset_ns=before["offset_ns"] + round(drift * (start_ns - before["at_ns"])),
        drift_ppb=round(drift * 1e9, 3),
        uncertainty_ns=max(before["uncertainty_ns"], after["uncertainty_ns"]),
    )


@dataclass(frozen=True)
class Multihost:
    """The backend of a multi-host run, whose hosts have already run.

    Attributes:
        parts: each host's folder, by the host's name.
        times: "offset_ns", from the plan's clock to the controller's; "before" and "after", the
            measurements of clocks by host.
        name: the backend in the manifest.
        in_kernel: see Backend.
    """

    parts: Mapping[str, Path]
    times: Mapping[str, Any]
    name: str = "multihost"
    in_kernel: bool = False

    def run(self, folder: Path, on_progress: Callable[[Progress], None]) -> None:  # noqa: ARG002
        """Merge the hosts' artifacts into `folder`; the hosts have already run."""
        for part in self.parts.values():
            for path in sorted(part.rglob("*")):
                name = str(path.relative_to(part))
                if path.is_file() and name not in _NOT_MERGED:
                    _add(path, folder / name)
        start_ns = read_plan(folder).clock.start_ns
        offset_ns = self.times["offset_ns"]
        clocks: dict[str, HostClock] = {}
        before, after = self.times["before"], self.times["after"]
        for name, machine in self._machines.items():
            if name in before:
                of_machine = clock(before[name], after[name], start_ns + offset_ns)
            else:
                of_machine = HostClock()  # the reference
            clocks |= dict.fromkeys(machine.nodes, of_machine)
        write_json(folder / CLOCKS, Clocks(offset_ns=offset_ns, nodes=clocks).model_dump())

    @property
    def took_s(self) -> float:
        """Time between the measurements before and after the run, s."""
        ends = zip(self.times["before"].values(), self.times["after"].values(), strict=True)
        return max(((after["at_ns"] - before["at_ns"]) / 1e9 for before, after in ends), default=0)

    def description(self) -> Machines:
        """Describe the kernels and modules of all hosts."""
        machines = self._machines
        kernels = [machine.kernel for machine in machines.values()]
        return Machines(
            backend=self.name,
            clock_source="host",
            kernel=Kernel(
                release=", ".join(dict.fromkeys(kernel.release for kernel in kernels)),
                key=", ".join(dict.fromkeys(kernel.key for kernel in kernels)),
            ),
            modules={k: v for m in machines.values() for k, v in m.modules.items()},
            machines=machines,
        )

    def identify(self, modules: Sequence[str]) -> dict[str, Any]:  # noqa: ARG002 - each has its own
        """Identify the kernel, programs and modules of every host."""
        return {name: machine.decisive for name, machine in self._machines.items()}

    @cached_property
    def _machines(self) -> dict[str, Machine]:
        """Return each host's machine.json, by the host's name.

        Raises: RunError if one was written by another version of twoway.
        """
        try:
            return {name: Machine.read(part / MACHINE) for name, part in self.parts.items()}
        except ValueError as error:
            raise RunError(str(error)) from error


def _add(path: Path, target: Path) -> None:
    """Copy a host's artifact; merge CSV rows by time, concatenate other files."""
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
    """Split a CSV file into its preamble with header, and its rows."""
    lines = path.read_text().splitlines(keepends=True)
    first = next((n for n, line in enumerate(lines) if line[0].isdigit()), len(lines))
    return lines[:first], lines[first:]
