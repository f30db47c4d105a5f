"""All backends: those that the modules of this package list in KINDS."""

from functools import cache

from capture_analysis.discovery import modules_of

from twoway import backends
from twoway.backends.backend import Backend, Kind


@cache
def kinds() -> dict[str, Kind]:
    """List the backends by name; uml, the default, is first."""
    found = [kind for module in modules_of(backends) for kind in getattr(module, "KINDS", ())]
    return {kind.name: kind for kind in sorted(found, key=lambda kind: kind.name != "uml")}


def find_backend(name: str) -> Backend:
    """Make the backend that `--backend` names.

    Raises: TwowayError if the backend cannot be used on this machine.
    """
    return kinds()[name].make()
