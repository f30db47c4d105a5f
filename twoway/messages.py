"""Lines for people, on standard error."""

from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

# Longest line to print: longer ones come from a guest or a file that wrote without end.
_MOST_CHARACTERS = 2000


@cache
def console() -> "Console":
    """Return rich's console on standard error."""
    # loading rich takes longer than a command without output
    from twoway.console import PrintableConsole  # noqa: PLC0415

    return PrintableConsole(stderr=True, highlight=False)


def hush() -> None:
    """Print only errors from now on."""
    console().quiet = True


def say(text: str, *, markup: bool = True, wrong: bool = False) -> None:
    """Print lines for people on standard error, never wrapped.

    Args:
        text: the lines.
        markup: True if the text has rich's markup, such as [red].
        wrong: True for errors, which are printed after hush(), too.
    """
    shown = console()
    quiet, shown.quiet = shown.quiet, shown.quiet and not wrong
    shown.print("\n".join(map(cut, text.split("\n"))), markup=markup, soft_wrap=True)
    shown.quiet = quiet


def meant(name: str, known: Iterable[str]) -> str:
    """Ask whether the closest of the known names is meant; return nothing if none is close.

    If no whole name is, the first words of names are compared: "mtu" is close to "mtu_bytes".
    """
    import difflib  # noqa: PLC0415 # only errors need it

    names = [*known]
    close = difflib.get_close_matches(name, names, n=1)
    by_first_word = {each.partition("_")[0]: each for each in names}
    close += [by_first_word[word] for word in difflib.get_close_matches(name, by_first_word, n=1)]
    return f'; did you mean "{close[0]}"?' if close else ""


def cut(line: str, most: int = _MOST_CHARACTERS) -> str:
    """Cut a line to a readable length."""
    return line if len(line) <= most else f"{line[:most]}..."
