"""Printing words of files, names and programs without letting them steer a terminal.

Text from a capture, a manifest, a file's name or a guest may have escape sequences, which move the
cursor, rename the window or hide earlier output. Commands print inside only_printable(), so a print
need not know the origin of its words.
"""

import os
import re
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, TextIO, cast

# Control characters except tab and newline; marks and overrides of writing direction; the line ends
# of Unicode; bytes of a file's name that are not UTF-8; and the two that are no characters, which
# XML forbids.
_STEERING = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff"
    "\ufffe\uffff]"
)
_PLAIN = bytes(range(0x20, 0x7F)) + b"\t\n"


def printable(text: str) -> str:
    r"""Spell out control characters as JSON does: ESC becomes \u001b."""
    if text.isascii() and not text.encode().translate(None, _PLAIN):
        return text  # a tenth of the search's time
    return _STEERING.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


class PrintableStream:
    """A text stream that spells out control characters.

    Attributes:
        rich_proxied_file: the stream below. A console of rich finds it here, for its colours.
    """

    def __init__(self, below: TextIO) -> None:
        self.rich_proxied_file = below

    def write(self, text: str) -> int:
        """Write text without control characters."""
        return self.rich_proxied_file.write(printable(text))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.rich_proxied_file, name)


def terminal() -> TextIO:
    """Return standard error, for control codes of our own."""
    below: TextIO = getattr(sys.stderr, "rich_proxied_file", sys.stderr)
    return below


@contextmanager
def only_printable() -> Iterator[None]:
    """Make all output spell out control characters.

    A closed standard stream becomes /dev/null; otherwise the next opened file would take its place.
    """
    with ExitStack() as stack:
        for stream, redirect in ((sys.stdout, redirect_stdout), (sys.stderr, redirect_stderr)):
            below = stream or stack.enter_context(Path(os.devnull).open("w"))
            stack.enter_context(redirect(cast("TextIO", PrintableStream(below))))
        yield
