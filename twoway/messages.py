"""Lines for people, on standard error."""

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console


@cache
def console() -> "Console":
    """Return the terminal, or what standard error is instead."""
    from rich.console import Console  # noqa: PLC0415 - takes longer than a command that says nothing

    return Console(stderr=True, highlight=False)


def hush() -> None:
    """Leave out all that is said from now on, but for what is wrong."""
    console().quiet = True


def say(text: str, *, markup: bool = True, wrong: bool = False) -> None:
    """Print a line for people on standard error, never wrapped.

    Args:
        text: the line.
        markup: rich's, such as [red], is in it.
        wrong: it says what is wrong, and is printed after hush(), too.
    """
    shown = console()
    quiet, shown.quiet = shown.quiet, shown.quiet and not wrong
    shown.print(text, markup=markup, soft_wrap=True)
    shown.quiet = quiet
