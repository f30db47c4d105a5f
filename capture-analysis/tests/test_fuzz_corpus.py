"""The parser in C and the one in numpy, on what fuzzing found worth keeping."""

from pathlib import Path

import pytest
from both_parsers import assert_alike
from capture_analysis import native
from hand_built import captures

CORPUS = Path(__file__).parents[1] / "native" / "fuzz" / "corpus"


@pytest.mark.skipif(not native.available(), reason="the C parser is not built")
def test_alike() -> None:
    """Both parsers give the same rows, counts, connections and sentences, however broken a file."""
    files = [path.read_bytes() for path in sorted(CORPUS.iterdir())]
    assert len(files) > 100
    for content in files + captures():
        assert_alike(content)
