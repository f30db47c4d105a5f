"""The parts of a format of exported files."""

from collections.abc import Callable
from dataclasses import dataclass

from twoway.report.series import RunSeries


@dataclass(frozen=True)
class Format:
    """A file format.

    Attributes:
        name: what `--format` names it.
        suffix: how its files' names end.
        help: what it is, for `twoway export --help`.
        encode: makes a file's content.
    """

    name: str
    suffix: str
    help: str
    encode: Callable[[RunSeries], bytes]
