"""Two-way TCP on the real Linux kernel, in virtual time."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from twoway.api import Run, Sweep, difference, evaluate, load, run, spread, sweep

__version__ = "1.0.0"
__all__ = ["Run", "Sweep", "difference", "evaluate", "load", "run", "spread", "sweep"]


def __getattr__(name: str) -> Any:
    """Load the Python interface on first use: commands start without it."""
    if name in __all__:
        return getattr(import_module("twoway.api"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
