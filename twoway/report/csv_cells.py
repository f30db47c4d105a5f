"""Cells of CSV tables, made safe for spreadsheets: a text is never a formula."""

from collections.abc import Iterable
from typing import Any

# The first characters of a formula in a spreadsheet.
_STARTS = ("=", "+", "-", "@", "\t", "\r")


def cells(row: Iterable[Any]) -> list[Any]:
    """Put an apostrophe before texts that a spreadsheet would compute; keep numbers."""
    return [f"'{cell}" if _is_formula(cell) else cell for cell in row]


def _is_formula(cell: object) -> bool:
    if not (isinstance(cell, str) and cell.startswith(_STARTS)):
        return False
    try:
        float(cell)
    except ValueError:
        return True
    return False
