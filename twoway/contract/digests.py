"""Digests that identify files."""

import hashlib
from functools import cache
from pathlib import Path


@cache
def sha256(path: Path) -> str:
    """Hash a file that does not change while this process lives."""
    return digest(path)


def digest(path: Path) -> str:
    """Hash a file as it is now."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
