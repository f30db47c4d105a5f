"""The parser in C and the one in numpy, on what fuzzing found worth keeping."""

from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from capture_analysis import native
from capture_analysis.columns import Packets, empty_columns
from capture_analysis.errors import AnalysisError
from capture_analysis.fallback import NumpyParser
from capture_analysis.parsing import PCAP_HEADER_BYTES, Parser
from hand_built import captures

CORPUS = Path(__file__).parents[1] / "native" / "fuzz" / "corpus"
ROWS = 64


def outcome(parser: Parser, content: bytes) -> dict[str, Any]:
    """All that a parser says of a file, as comparable values."""
    data = np.frombuffer(content, np.uint8)
    columns = empty_columns(ROWS)
    rows: list[tuple[int, ...]] = []
    taken, at = -1, 0
    try:
        while taken:
            taken, end = parser.parse(data[at:], columns, 0)
            at += taken
            filled = (getattr(columns, field.name)[:end].tolist() for field in fields(Packets))
            rows += zip(*filled, strict=True)
    except AnalysisError as error:
        return {"error": str(error)}
    said = {name: getattr(parser, name) for name in ("format", "link_types", "broken", "counts")}
    return {"rows": rows, "taken": at, "flows": parser.flows.rows.tobytes(), **said}


@pytest.mark.skipif(not native.available(), reason="the C parser is not built")
def test_alike() -> None:
    """Both parsers give the same rows, counts, connections and sentences, however broken a file."""
    files = [path.read_bytes() for path in sorted(CORPUS.iterdir())]
    assert len(files) > 100
    for content in files + captures():
        if len(content) >= PCAP_HEADER_BYTES:
            assert outcome(native.NativeParser(), content) == outcome(NumpyParser(), content)
