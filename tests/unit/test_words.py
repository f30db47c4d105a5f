"""The number of refused words never rises."""

import subprocess
from pathlib import Path

from support.words import risen, words_of


def test_no_file_has_more_refused_words_than_before() -> None:
    """No file has more refused words than at the newest commit of their list."""
    assert risen() == {}, "write it in plain words (docs/style.md)"


def test_a_rename_keeps_the_count(tmp_path: Path) -> None:
    """A renamed file may keep its refused words, but not gain one; a new file may have none."""

    def git(*words: str) -> None:
        subprocess.run(["git", *words], cwd=tmp_path, check=True, capture_output=True)

    git("init")
    git("config", "user.name", "Somebody")
    git("config", "user.email", "somebody@example.org")
    words = "Nobody knows.\n" * 9
    _write(tmp_path, {"tests/support/words.py": "", "page.md": words, "kept.md": words})
    git("add", ".")
    git("commit", "--message", "first")
    git("mv", "page.md", "moved.md")
    _write(tmp_path, {"later.md": "Plain.\n", "kept.md": "Nobody knows.\n"})
    git("add", ".")
    git("commit", "--message", "second")
    assert risen(tmp_path) == {}
    _write(tmp_path, {"moved.md": f"{words}Nobody asks.\n", "later.md": "Nobody asks.\n"})
    assert risen(tmp_path) == {"moved.md": (9, 10), "later.md": (0, 1)}


def _write(folder: Path, texts: dict[str, str]) -> None:
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")


def test_words_are_found_in_text_and_names() -> None:
    """Phrases count across lines; words count as parts of Python names, except in terms."""
    program = (
        '"""So\nmany."""\nfirst_half = behalf = sideways = Case\n'
        "half_duplex = two_way_half = find(rows, side='left', side=\"left\")\n"
    )
    found = {"so many": 1, "first_half": 1, "Case": 1, "two_way_half": 1, "side": 1}
    assert words_of("program.py", program) == found
    assert words_of("page.md", "Nobody has half of it.\n") == {"nobody": 1}


def test_first_words_of_docstrings_count() -> None:
    """A docstring's first word counts if it is refused; first words of other texts do not."""
    program = '"""Of two."""\n\n\ndef f():\n    """What f does."""\n    return "How"  # Where\n'
    assert words_of("program.py", program) == {"Of": 1, "What": 1}
