"""Digests that identify files."""

import hashlib
from functools import cache
from pathlib import Path
from typing import BinaryIO


@cache
def sha256(path: Path) -> str:
    """Hash a file that does not change while this process lives."""
    return digest(path)


def digest(path: Path) -> str:
    """Hash a file as it is now."""
    with path.open("rb") as file:
        return digest_of(file)


def digest_of(file: BinaryIO) -> str:
    """Hash an opened file."""
    hashed = hashlib.file_digest(file, "sha256")  # type: ignore[arg-type] # it asks for readinto
    return hashed.hexdigest()
