"""The number of refused words never rises."""

from pathlib import Path

import pytest
from words import TABLE, allowed, counts, words_of


@pytest.mark.slow
def test_no_file_has_more_refused_words_than_before() -> None:
    """No file has more refused words than its row of the table, or none without a row.

    `python tests/support/words.py` writes the table again, after a fall or a move of files.
    """
    limits = allowed()
    more = {name: count for name, count in counts().items() if count > limits.get(name, 0)}
    assert more == {}, f"write it in plain words (docs/style.md), or see {TABLE}"


def test_words_are_found_in_text_and_names(tmp_path: Path) -> None:
    """Phrases count across lines; words count as parts of Python names, except in terms."""
    program = tmp_path / "program.py"
    program.write_text(
        '"""So\nmany."""\nfirst_half = behalf = sideways = Case\n'
        "half_duplex = two_way_half = find(rows, side='left', side=\"left\")\n",
        encoding="utf-8",
    )
    found = {"so many": 1, "first_half": 1, "Case": 1, "two_way_half": 1, "side": 1}
    assert words_of(program) == found
    page = tmp_path / "page.md"
    page.write_text("Nobody has half of it.\n", encoding="utf-8")
    assert words_of(page) == {"nobody": 1}


def test_first_words_of_docstrings_count(tmp_path: Path) -> None:
    """A docstring's first word counts if it is refused; first words of other texts do not."""
    program = tmp_path / "program.py"
    program.write_text(
        '"""Of two."""\n\n\ndef f():\n    """What f does."""\n    return "How"  # Where\n', "utf-8"
    )
    assert words_of(program) == {"Of": 1, "What": 1}
