"""Lines for people, on standard error."""

import re
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


def say(text: str, *, markup: bool = False, wrong: bool = False) -> None:
    """Print lines for people on standard error, never wrapped.

    Args:
        text: the lines.
        markup: True if the text has rich's markup, such as [red].
        wrong: True for errors, which are printed after hush(), too.
    """
    shown = console()
    quiet, shown.quiet = shown.quiet, shown.quiet and not wrong
    shown.print("\n".join(map(cut_line, text.split("\n"))), markup=markup, soft_wrap=True)
    shown.quiet = quiet


def suggest(name: str, known: Iterable[str]) -> str:
    """Ask whether the closest of the known names is meant; return nothing if none is close.

    A name is close if at most a third of its letters differ, if it has all words of the other, or
    if it begins with the other: "mtu_byte", "mtu" and "mtu_bytes2" are close to "mtu_bytes". A last
    word that both names share, such as a unit, does not count.
    """
    names = [*known]
    close = sorted((found, each) for each in names if (found := _distance(name, each)) is not None)
    parts = (each for each in names if _is_part(name, each))
    close = close or sorted((len(each) - 99 * each.startswith(name), each) for each in parts)
    return f'; did you mean "{close[0][1]}"?' if close else ""


def _distance(name: str, other: str) -> int | None:
    """Count the letters that differ between two names; None for more than a third."""
    (*_, rest, last), (*_, others_rest, others_last) = (
        ("", *each.rpartition("_")[::2]) for each in (name, other)
    )
    if rest and others_rest and last == others_last:
        name, other = rest, others_rest
    if abs(len(name) - len(other)) > len(name) // 3:
        return None
    row = [*range(len(other) + 1)]
    for n, letter in enumerate(name, start=1):
        above, row = row, [n]
        for at, its in enumerate(other):
            row.append(min(above[at] + (letter != its), above[at + 1] + 1, row[at] + 1))
    return row[-1] if row[-1] <= len(name) // 3 else None


def _is_part(name: str, other: str) -> bool:
    """Tell whether a name has words of the other in a row, or begins with it."""
    words, others = (f"_{re.sub('[-.]', '_', each)}_" for each in (name, other))
    return len(name) > 2 and (words in others or name.startswith(other))


def cut_line(line: str, most: int = _MOST_CHARACTERS) -> str:
    """Cut a line to a readable length."""
    return line if len(line) <= most else f"{line[:most]}..."
