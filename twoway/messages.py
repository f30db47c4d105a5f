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


def say(text: str, *, markup: bool = True) -> None:
    """Print a line for people on standard error, never wrapped."""
    console().print(text, markup=markup, soft_wrap=True)
