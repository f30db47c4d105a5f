"""All backends: those that the modules of this package list in KINDS."""

import re
from collections.abc import Callable
from functools import cache
from itertools import product

from capture_analysis.discovery import modules_of

from twoway import backends
from twoway.backends.backend import Backend, Kind
from twoway.description.point import Point
from twoway.description.stack import ECN_MODES
from twoway.errors import UsageError

# The first kernel that knows AccECN.
_FIRST_ACCECN = (6, 18)


@cache
def kinds() -> dict[str, Kind]:
    """List the backends by name; uml, the default, is first."""
    found = [kind for module in modules_of(backends) for kind in getattr(module, "KINDS", ())]
    return {kind.name: kind for kind in sorted(found, key=lambda kind: kind.name != "uml")}


def find_backend(name: str, kernel: str | None = None) -> Backend:
    """Make the backend that `--backend` names.

    Args:
        name: the backend's name.
        kernel: the name of a kernel, see kernel_named(); None for the backend's own.

    Raises: TwowayError if the backend cannot be used on this machine, or not with this kernel.
    """
    kind = kinds()[name]
    if kernel is None:
        return kind.make()
    if kind.on_kernel is None:
        raise UsageError(
            f"kernel: the backend {name} has its own kernel, got {kernel:.80}",
            "the backend uml accepts others",
        )
    return kind.on_kernel(kernel)


def backend_for(point: Point, backend: Backend) -> Backend:
    """Return a backend with the kernel that an experiment asks for; itself if it asks for none.

    Raises: as find_backend(); UsageError if a host's stack is that of another kernel.
    """
    kernel = point.experiment.kernel
    found = find_backend(backend.name, kernel) if kernel else backend
    refuse_kernel(point, found.name, lambda: found.description().kernel.release)
    return found


def refuse_kernel(point: Point, backend: str, release_of: Callable[[], str]) -> None:
    """Check that a kernel has what the hosts' stacks need.

    Its release, "" if unknown, is asked for if a stack needs one.

    Raises: UsageError if a host's stack is that of another kernel.
    """
    stacks = point.experiment.stacks
    versions = {stack.version for stack in stacks} - {""}
    accurate = {
        f"{stack.ecn}"
        for stack in stacks
        if stack.ecn is not None and ECN_MODES[stack.ecn] > ECN_MODES["accept"]
    }
    release = release_of() if versions or accurate else ""
    if not release:
        return
    for mode, one in product(sorted(accurate), release.split(", ")):  # of several hosts
        if tuple(map(int, re.findall(r"\d+", one)[:2])) < _FIRST_ACCECN:
            raise UsageError(
                f"{point.id}: stack.ecn: {mode} needs Linux 6.18 or later, and the backend "
                f"{backend} runs {release}",
                "`kernel: newest` has it",
            )
    for version, one in product(sorted(versions), release.split(", ")):
        if not re.match(rf"{re.escape(version)}(?![0-9])", one):
            raise UsageError(
                f"{point.id}: stack.preset: linux-{version} needs Linux {version}, and the "
                f"backend {backend} runs {release}",
                "`preset: linux` takes the defaults of any kernel; `kernel` names another",
            )
