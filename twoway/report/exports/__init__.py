"""Formats of exported files, one module each."""

from collections.abc import Callable
from dataclasses import dataclass

from twoway.report.series import RunSeries


@dataclass(frozen=True)
class Format:
    """A file format.

    Attributes:
        name: its name for `--format`.
        suffix: the suffix of its files' names.
        help: its line in `twoway export --help`.
        encode: returns a file's content.
    """

    name: str
    suffix: str
    help: str
    encode: Callable[[RunSeries], bytes]
