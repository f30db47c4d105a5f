"""The interface of all backends: equal plans give equal artifacts."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from pydantic import Field

from twoway.contract.model import Record
from twoway.contract.plan import Plan
from twoway.errors import UsageError
from twoway.manifest import Platform


class Progress(Record):
    """Progress of a run."""

    time_ns: int = Field(description="the guest's clock")
    acked_bytes: int = Field(description="data acknowledged so far, of all connections")
    queued_packets: int = Field(description="packets in all queues")


class Backend(Protocol):
    """A kernel with a clock, on which a plan is carried out."""

    @property
    def name(self) -> str:
        """The name that `--backend` takes and that manifests show."""

    @property
    def in_kernel(self) -> bool:
        """True if our module twoway_testbed captures and samples, not programs."""

    def run(self, folder: Path, on_progress: Callable[[Progress], None]) -> None:
        """Carry out the plan.json of a run's folder and leave the artifacts there.

        Args:
            folder: the run's folder.
            on_progress: called about ten times a second while the kernel's clock moves.

        Raises: RunError if the run failed, died, got stuck, or its kernel reported a fault.
        """

    def description(self) -> Platform:
        """Describe kernel, modules and clock of the backend in a manifest."""

    def identify(self, modules: Sequence[str]) -> dict[str, Any]:
        """Identify everything besides the plan that decides the bytes of a run.

        Args:
            modules: file names of the kernel modules that the plan loads.

        Returns: digests or versions of kernel, programs and these modules.
        """


def refuse_what_uml_has(plan: Plan, backend: str) -> None:
    """Raise UsageError if a plan needs a feature that only user-mode Linux's guest has."""
    if plan.guest_only:
        fields = (
            f"{what}: not possible with the backend {backend}; uml has it"
            for what in plan.guest_only
        )
        raise UsageError("\n".join(fields))


@dataclass(frozen=True)
class Kind:
    """A backend that `--backend` offers, listed in KINDS of its module.

    Attributes:
        name: the value of `--backend`.
        help: a few words for the help text; empty for variants that need none.
        make: returns the backend and builds its kernel and programs if need be; raises TwowayError
            if it cannot.
        on_kernel: the same with a kernel built from another source; None if the backend has its own
            kernel.
    """

    name: str
    help: str
    make: Callable[[], Backend]
    on_kernel: Callable[[str], Backend] | None = None
