"""Lines for people, on standard error."""

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

# Longer lines are of a guest or a file that wrote without end.
_MOST_CHARACTERS = 2000


@cache
def console() -> "Console":
    """Return rich's console on standard error."""
    # rich takes longer to load than a command that says nothing
    from twoway.console import PrintableConsole  # noqa: PLC0415

    return PrintableConsole(stderr=True, highlight=False)


def hush() -> None:
    """Print only errors from now on."""
    console().quiet = True


def say(text: str, *, markup: bool = True, wrong: bool = False) -> None:
    """Print lines for people on standard error, never wrapped.

    Args:
        text: the lines.
        markup: rich's, such as [red], is in it.
        wrong: it says what is wrong, and is printed after hush(), too.
    """
    shown = console()
    quiet, shown.quiet = shown.quiet, shown.quiet and not wrong
    shown.print("\n".join(map(cut, text.split("\n"))), markup=markup, soft_wrap=True)
    shown.quiet = quiet


def cut(line: str, most: int = _MOST_CHARACTERS) -> str:
    """Cut a line to a length that a person reads."""
    return line if len(line) <= most else f"{line[:most]}..."
