"""Both parsers at once: the one in C, and the one in Python that it must equal."""

from dataclasses import fields
from typing import Any

import numpy as np
from capture_analysis.columns import Packets, empty_columns
from capture_analysis.errors import AnalysisError
from capture_analysis.reading.parsing import Parser
from reference.parser import PlainParser

AnyParser = Parser | PlainParser
_SAID = ("format", "link_types", "damage", "broken", "counts")
PARSERS: list[type[AnyParser]] = [PlainParser, Parser]


def outcome(parser: AnyParser, content: bytes, rows: int = 64) -> dict[str, Any]:
    """Return a parser's whole result on a file, for this number of rows at a time."""
    data = np.frombuffer(content, np.uint8)
    columns = empty_columns(rows)
    found: list[tuple[int, ...]] = []
    taken, at = -1, 0
    try:
        while taken:
            taken, end = parser.parse(data[at:], columns, 0, last=True)
            at += taken
            filled = (getattr(columns, field.name)[:end].tolist() for field in fields(Packets))
            found += zip(*filled, strict=True)
    except AnalysisError as error:
        return {"error": str(error)}
    said = {name: getattr(parser, name) for name in _SAID}
    return {"rows": found, "taken": at, "flows": parser.flows.rows.tobytes(), **said}


def assert_alike(content: bytes, rows: int = 64) -> None:
    """Assert that both parsers agree on a file: TCP, TCP in tunnels, every protocol."""
    for every, inside in ((False, False), (False, True), (True, False)):
        one, other = (parser(every_protocol=every, inside=inside) for parser in PARSERS)
        assert outcome(one, content, rows) == outcome(other, content, rows)


def parse(content: bytes, rows: int = 64) -> tuple[Packets, Parser]:
    """Return the packets of a file's content, and the parser; the other parser must agree."""
    assert_alike(content, rows)
    parser = Parser()
    columns = empty_columns(rows)
    _, end = parser.parse(np.frombuffer(content, np.uint8), columns, 0, last=True)
    return columns.where(slice(0, end)), parser


def in_pieces(parser: AnyParser, content: bytes, piece_bytes: int, rows: int) -> list[list[int]]:
    """Return a parser's result for a number of bytes at a time, and a number of rows.

    Returns: the values of all columns of every packet.
    """
    data = np.frombuffer(content, np.uint8)
    columns = empty_columns(rows)
    found: list[list[int]] = []
    at, end = 0, min(piece_bytes, len(data))
    while True:
        taken, filled = parser.parse(data[at:end], columns, 0, last=end == len(data))
        at += taken
        kept = [getattr(columns, field.name)[:filled].tolist() for field in fields(Packets)]
        found += map(list, zip(*kept, strict=True))
        if filled < rows and end == len(data):
            return found
        if filled < rows:
            end = min(end + piece_bytes, len(data))
