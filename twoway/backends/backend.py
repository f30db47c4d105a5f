"""Where an experiment runs: same plan, same artifacts, whatever the backend."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol


@dataclass(frozen=True)
class Progress:
    """Where a run is."""

    time_ns: int
    acked_bytes: int
    queued_packets: int


class Backend(Protocol):
    """A kernel with a clock, and a way to carry a plan out on it."""

    @property
    def name(self) -> str:
        """As `--backend` and manifests have it."""

    def run(self, folder: Path, on_progress: Callable[[Progress], None]) -> None:
        """Carry out the plan.json in a run's folder, and leave the artifacts there.

        Args:
            folder: the run's.
            on_progress: called about ten times a second while time moves.

        Raises: RunError if it did not finish, or finished with something it must not have.
        """

    def description(self) -> dict[str, Any]:
        """What a manifest says of it: "backend", "clock_source", "kernel", "modules".

        The clock's source is "virtual" if time stands still while the machine works; else
        "instructions", if it counts them, or "host".
        """

    def decisive(self, modules: Sequence[str]) -> dict[str, Any]:
        """What decides a run's bytes beside its plan: the kernel, programs, modules in use.

        Args:
            modules: file names of those that the plan loads.
        """


@dataclass(frozen=True)
class Kind:
    """A backend that `--backend` offers; a module of this package lists its own in KINDS.

    Attributes:
        name: as `--backend` takes it.
        help: what it is, in a few words; empty for variants that need none.
        make: makes it, with what it runs on built if it is not. Raises TwowayError if it cannot.
    """

    name: str
    help: str
    make: Callable[[], Backend]
