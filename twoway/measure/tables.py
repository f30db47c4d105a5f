"""Reading tables of whole numbers, which a guest wrote: CSV with a `# key: value` preamble."""

import csv
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, BinaryIO, NoReturn

import numpy as np
from capture_analysis.columns import IntArray

from twoway.contract.guest_files import MOST_CHARACTERS, MOST_ROWS, RANGES

# Rows of a table that are read at a time.
_ROWS = 1 << 14


def read_numbers(
    file: BinaryIO, columns: Sequence[str], words: Mapping[str, Sequence[str]]
) -> dict[str, IntArray]:
    """Read columns of a table.

    Args:
        file: the table.
        columns: the columns to read.
        words: the columns of them that have words, with the known words. Each row's word is read as
            its place among the known words, -1 for any other word.

    Raises: ValueError or csv.Error if a column is missing, a row has another length or no number
        there or at its end, a number is out of range, or there are too many rows.
    """
    lines = _lines(file)
    head = next((line for line in lines if not line.startswith("#")), "")
    header = next(csv.reader([head]), [])
    _refuse_missing(columns, header)
    read = [array("q") for _ in columns]
    places = [header.index(title) for title in columns]
    whole = [*places, len(header) - 1]  # of a row that was cut off, the last is missing
    coded: dict[int | str, Callable[[str], Any]] = {
        header.index(title): _places(known) for title, known in words.items()
    }
    while several := list(islice(lines, _ROWS)):
        first = len(read[0]) + 1
        try:
            block = np.loadtxt(
                several, np.int64, delimiter=",", usecols=whole, ndmin=2, converters=coded
            )
            exact = "".join(several).count(",") == len(several) * (len(header) - 1)
        except ValueError:
            exact = False
        if not exact:
            _refuse_row(several, first, header, [at for at in whole if at not in coded])
        for title, column, values in zip(columns, read, block.T, strict=False):
            _check_range(title, values, first)
            column.frombytes(values.tobytes())
        if len(read[0]) > MOST_ROWS:
            raise ValueError(f"more than {MOST_ROWS} rows")
    return {
        title: np.frombuffer(column, dtype=np.int64)
        for title, column in zip(columns, read, strict=True)
    }


def _refuse_missing(needed: Sequence[str], header: list[str]) -> None:
    """Raise ValueError if a table's header lacks a column."""
    if missing := [title for title in needed if title not in header]:
        names = ", ".join(missing)
        raise ValueError(f"no column {names}: written by another version, or cut off")


def _lines(file: BinaryIO) -> Iterator[str]:
    """Read a table's lines, which a guest may have written without end.

    Raises: ValueError if a line is too long or not UTF-8.
    """
    while line := file.readline(MOST_CHARACTERS):
        if len(line) == MOST_CHARACTERS:
            raise ValueError(f"a row of more than {MOST_CHARACTERS} characters")
        yield line.decode()


def _places(known: Sequence[str]) -> Callable[[str], int]:
    """Make a function that finds a word's place among the known words; -1 for any other word."""
    places = {word: place for place, word in enumerate(known)}
    return lambda word: places.get(word, -1)


def _refuse_row(lines: list[str], first: int, header: list[str], places: list[int]) -> NoReturn:
    """Raise ValueError for the first of some rows that is too long, short or no number."""
    for number, row in enumerate(csv.reader(lines), start=first):
        _check_length(number, row, header)
        try:
            _ = [np.array(int(row[at]), dtype=np.int64) for at in places]
        except (ValueError, OverflowError) as error:
            raise ValueError(f"row {number}: {error!s:.200}") from error
    raise ValueError(f"no table of whole numbers from row {first} on")


def _check_length(number: int, row: list[str], header: list[str]) -> None:
    if len(row) != len(header):
        raise ValueError(f"row {number} has {len(row)} of {len(header)} columns")


def _check_range(column: str, values: IntArray, first: int) -> None:
    """Raise ValueError for the first number of a column that is out of the column's range."""
    if column in RANGES:
        least, most = RANGES[column]
        wrong = np.flatnonzero((values < least) | (values > most))
        if len(wrong):
            at = int(wrong[0])
            raise ValueError(
                f"row {first + at}: {column}: must be {least} to {most}, got {values[at]}"
            )
