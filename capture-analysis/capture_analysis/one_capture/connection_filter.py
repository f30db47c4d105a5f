"""Filters of the table of connections: a closed grammar, no code.

    filter = both { "or" both }
    both   = term { "and" term }
    term   = "not" term | "(" filter ")" | column sign value
    sign   = == != < <= > >=
    value  = number | word | "words" | 'words'

Words have == and != only. An unknown number fulfils no comparison.
"""

import operator
import re
from collections.abc import Callable

import numpy as np

from capture_analysis.columns import BoolArray
from capture_analysis.errors import AnalysisError
from capture_analysis.one_capture.connections import Column, Connections, Words

# The longest filter, characters; also bounds the depth of its brackets.
LONGEST = 500
_TOKEN = re.compile(
    r"""\s*(?:(?P<sign>[=!<>]=|[<>])|(?P<bracket>[()])|(?P<word>[^\s()=!<>'"]+)"""
    r"""|"(?P<double>[^"]*)"|'(?P<single>[^']*)')""",
    re.ASCII,
)
_SIGNS: dict[str, Callable[..., BoolArray]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def column_of(connections: Connections, name: str) -> Column:
    """Return a column.

    Raises: AnalysisError if the table has none of this name.
    """
    if name not in connections.columns:
        known = ", ".join(connections.columns)
        raise AnalysisError(f'connections have no column "{name:.40}"; there are {known}')
    return connections.columns[name]


def select_connections(connections: Connections, text: str) -> BoolArray:
    """Mark the connections that a filter selects, shape (n,).

    Raises: AnalysisError with the place if the text does not follow the grammar.
    """
    return _Reader(connections, text).read()


class _Reader:
    def __init__(self, connections: Connections, text: str) -> None:
        self._connections, self._text, self._at = connections, text, 0

    def read(self) -> BoolArray:
        if len(self._text) > LONGEST:
            raise AnalysisError(f"--where: at most {LONGEST} characters, got {len(self._text)}")
        found = self._either()
        if self._text[self._at :].strip():
            raise self._expected('"and", "or" or its end')
        return found

    def _either(self) -> BoolArray:
        found = self._both()
        while self._next("word", "or"):
            found = found | self._both()
        return found

    def _both(self) -> BoolArray:
        found = self._term()
        while self._next("word", "and"):
            found = found & self._term()
        return found

    def _term(self) -> BoolArray:
        if self._next("word", "not"):
            return ~self._term()
        if self._next("bracket", "("):
            found = self._either()
            if not self._next("bracket", ")"):
                raise self._expected('")"')
            return found
        name = self._next("word")
        if not name:
            raise self._expected("a column")
        column = column_of(self._connections, name)
        sign = self._next("sign")
        if not sign:
            raise self._expected(f"one of {' '.join(_SIGNS)}")
        return self._compared(column, sign)

    def _compared(self, column: Column, sign: str) -> BoolArray:
        if isinstance(column, Words):
            if sign not in ("==", "!="):
                raise AnalysisError(f"--where: words have == and !=, got {sign}")
            kinds = ("word", "double", "single")
            value = next((found for kind in kinds if (found := self._next(kind))), "")
            if not value:
                raise self._expected("a word")
            held = np.array([_SIGNS[sign](each, value) for each in column.all], dtype=np.bool_)
            return np.asarray(held[column.number])
        start = self._at
        try:
            number = float(self._next("word"))
        except ValueError:
            self._at = start
            raise self._expected("a number") from None
        return _SIGNS[sign](column, number) & ~np.isnan(column)

    def _next(self, kind: str, text: str = "") -> str:
        """Take a token of a kind, or a certain one, if it comes next; else return nothing."""
        found = _TOKEN.match(self._text, self._at)
        if not found or not found[kind] or (text and found[kind] != text):
            return ""
        self._at = found.end()
        return str(found[kind])

    def _expected(self, what: str) -> AnalysisError:
        rest = self._text[self._at :].strip()
        got = f'"{rest:.40}"' if rest else "its end"
        return AnalysisError(f"--where: expected {what}, got {got}")
