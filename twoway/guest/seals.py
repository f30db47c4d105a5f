"""Digests of what was built, so that a broken cache is noticed and named."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from twoway.contract.digests import digest
from twoway.errors import TwowayError


class BrokenBuildError(TwowayError):
    """Something in the cache that is not as it was built."""

    def __init__(self, path: Path, what: str) -> None:
        super().__init__(f"{path}: {what}", "`twoway build` builds it again")
        self.path = path


def digests_of(files: Iterable[Path]) -> dict[str, str]:
    """Hash files, by name."""
    return {path.name: digest(path) for path in sorted(files)}


def read_facts(path: Path) -> dict[str, Any]:
    """Read a document about a build.

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

    Raises: BrokenBuildError that names the first file that is missing or has changed.
    """
    for name, wanted in digests.items():
        path = folder / name
        if not path.is_file():
            raise BrokenBuildError(path, "missing")
        if digest(path) != wanted:
            raise BrokenBuildError(path, "not as it was built")
