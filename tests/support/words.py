"""Count the words that the style refuses, in each file; as a program, write the table of counts."""

import ast
import io
import re
import subprocess
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TABLE = ROOT / "tests/unit/refused_words.tsv"
# Phrases that make a reader decode a sentence, in any place.
PHRASES = (
    "so many",
    "is told",
    "are told",
    "is said",
    "of which",
    "nobody",
    "held against",
    "is what",
    "are what",
    "of what",
    "that is none",
)
# First words of docstrings whose subject is missing, comes late, or is in the line above.
OPENERS = (
    "What",
    "How",
    "Of",
    "Where",
    "Whether",
    "Whose",
    "Have",
    "Who",
    "Its",
    "Such",
    "Likewise.",
)
# Parts of Python names for which the glossary has other words, such as direction and point.
_NAMES = re.compile(r"(?:^|_)(?:ways?|half|halves|sides?|lanes?)(?:_|$)|^Case$")
# Standard terms with such a part in them.
_TERMS = re.compile(r"half_duplex|one_way|two_way|under_way|half_corridor")
_KINDS = ("*.py", "*.md", "*.c", "*.h", "*.yml", "*.html")
# Documents of their day stay as written; the others here list the refused words.
_LEFT_OUT = ("CHANGELOG.md", "docs/decisions/", "docs/style.md", "tests/support/words.py")


def counts() -> dict[str, int]:
    """Count refused words by file, without zeros."""
    listed = subprocess.run(
        ["git", "ls-files", *_KINDS], cwd=ROOT, capture_output=True, text=True, check=True
    )
    names = (name for name in listed.stdout.split() if not name.startswith(_LEFT_OUT))
    found = {name: sum(words_of(ROOT / name).values()) for name in names}
    return {name: count for name, count in found.items() if count}


def words_of(path: Path) -> Counter[str]:
    """Count the refused words of a file."""
    text = path.read_text(encoding="utf-8", errors="replace")
    flat = " ".join(text.lower().split())
    found = Counter({phrase: flat.count(phrase) for phrase in PHRASES})
    if path.suffix == ".py":
        found.update(name for name in _names(text) if _NAMES.search(_TERMS.sub("", name)))
        found.update(opener for opener in _first_words(text) if opener in OPENERS)
    return +found


def _names(source: str) -> Iterator[str]:
    """List the names in a module, without numpy's argument `side="left"` or `"right"`."""
    tokens = [*tokenize.generate_tokens(io.StringIO(source).readline)]
    for token, *following in zip(tokens, tokens[1:], tokens[2:], strict=False):
        of_numpy = [each.string for each in following] in (["=", '"left"'], ["=", '"right"'])
        if token.type == tokenize.NAME and not (token.string == "side" and of_numpy):
            yield token.string


def _first_words(source: str) -> list[str]:
    """List the first word of each docstring of a module."""
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    nodes = (node for node in ast.walk(ast.parse(source)) if isinstance(node, kinds))
    return [text.split(maxsplit=1)[0] for node in nodes if (text := ast.get_docstring(node))]


def allowed() -> dict[str, int]:
    """Read the table: the largest count of each file; a file without a row has 0."""
    rows = (line.split("\t") for line in TABLE.read_text(encoding="utf-8").splitlines())
    return {name: int(count) for name, count in rows}


def main() -> int:
    """Write the table."""
    found = counts()
    TABLE.write_text("".join(f"{name}\t{found[name]}\n" for name in sorted(found)), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
