"""Count the words that the style refuses, in files that changed."""

import ast
import io
import re
import subprocess
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# This file: counts may not rise after its newest commit.
_LIST = "tests/support/words.py"
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
_LEFT_OUT = ("CHANGELOG.md", "docs/decisions/", "docs/style.md", _LIST)


def risen(root: Path = ROOT) -> dict[str, tuple[int, int]]:
    """List files with more refused words than at the newest commit of this list: then and now.

    A renamed file keeps its count, and a new file has none.
    """

    def git(*words: str) -> str:
        found = subprocess.check_output(["git", *words], cwd=root)
        return found.decode("utf-8", errors="replace")

    base = git("log", "-1", "--format=%H", "--", _LIST).strip()
    changed = ("diff", "-z", "--name-status", "--find-renames", "--diff-filter=AMR")
    fields = iter(git(*changed, base, "--", *_KINDS).split("\0")[:-1])
    found = {}
    for status in fields:
        old = next(fields)
        name = next(fields) if status.startswith("R") else old
        text = (root / name).read_text(encoding="utf-8", errors="replace")
        now = 0 if name.startswith(_LEFT_OUT) else words_of(name, text).total()
        before = "" if status == "A" or not now else git("show", f"{base}:{old}")
        if now > (then := words_of(old, before).total()):
            found[name] = then, now
    return found


def words_of(name: str, text: str) -> Counter[str]:
    """Count the refused words of a file with a name and text."""
    flat = " ".join(text.lower().split())
    found = Counter({phrase: flat.count(phrase) for phrase in PHRASES})
    if name.endswith(".py"):
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
