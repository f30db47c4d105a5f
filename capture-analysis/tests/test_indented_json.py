"""Documents are written as Python's encoder writes them."""

import json
import random
from typing import Any

import pytest
from capture_analysis.indented_json import indented

TEXTS = ("", 'a "quoted" {word}', "back\\slash", "[,]", "line\nand\ttab", "ä → \U0001f600", "\\")


def random_value(draw: random.Random, depth: int) -> Any:
    """Draw a value with up to `depth` levels."""
    kind = draw.randrange(6 if depth else 4)
    size = draw.randrange(4)
    if kind == 4:
        return [random_value(draw, depth - 1) for _ in range(size)]
    if kind == 5:
        return {draw.choice(TEXTS): random_value(draw, depth - 1) for _ in range(size)}
    return (draw.choice(TEXTS), draw.uniform(-1e9, 1e9), draw.choice((True, None)), size)[kind]


def test_documents_are_indented_as_by_json() -> None:
    """Texts with brackets, quotes and backslashes, and empty values at any level, are as json's."""
    draw = random.Random(36)
    for _ in range(300):
        document = {"value": random_value(draw, 5)}
        assert indented(document) == json.dumps(document, indent=1)


def test_an_empty_document_is_one_line() -> None:
    """A document without members is {}."""
    assert indented({}) == "{}"


def test_numbers_that_json_lacks_are_refused() -> None:
    """A document with an infinite number raises ValueError."""
    with pytest.raises(ValueError, match="not JSON compliant"):
        indented({"value": float("inf")})
