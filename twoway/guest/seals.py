"""Digests of a build's sources and of its files.

The digests of sources name a build; those of files detect and name a broken cache.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from twoway.contract.files import digest
from twoway.errors import TwowayError


class BrokenBuildError(TwowayError):
    """A file in the cache has changed since it was built."""

    def __init__(self, path: Path, what: str) -> None:
        super().__init__(f"{path}: {what}", "`twoway build` builds it again")
        self.path = path


def digests_of(files: Iterable[Path]) -> dict[str, str]:
    """Hash files, by name."""
    return {path.name: digest(path) for path in sorted(files)}


def read_facts(path: Path) -> dict[str, Any]:
    """Read the document on a build.

    Raises: BrokenBuildError if it is not a JSON object; FileNotFoundError.
    """
    try:
        facts = json.loads(path.read_bytes())
    except ValueError as error:
        raise BrokenBuildError(path, f"not JSON: {error}") from error
    if not isinstance(facts, dict):
        raise BrokenBuildError(path, "not a JSON object")
    return facts


def refuse_changed(folder: Path, digests: Mapping[str, str]) -> None:
    """Compare a folder's files with their digests when they were built.

    Raises: BrokenBuildError naming the first file that is missing or has changed.
    """
    for name, wanted in digests.items():
        path = folder / name
        if not path.is_file():
            raise BrokenBuildError(path, "missing")
        if digest(path) != wanted:
            raise BrokenBuildError(path, "changed since it was built")


def contents(folder: Path, patterns: Sequence[str]) -> Iterator[bytes]:
    """Read the names and contents of the files that match patterns, without kbuild's."""
    for pattern in patterns:
        for path in sorted(folder.glob(pattern)):
            if not path.name.endswith(".mod.c"):
                yield path.name.encode()
                yield path.read_bytes()


def content_hash(*parts: bytes) -> str:
    """Hash contents to a key of 16 hexadecimal digits."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "little"))
        digest.update(part)
    return digest.hexdigest()[:16]
