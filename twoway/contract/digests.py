"""Digests that identify files."""

import hashlib
from functools import cache
from pathlib import Path


@cache
def sha256(path: Path) -> str:
    """Hash a file that does not change while this process lives."""
    return hashlib.sha256(path.read_bytes()).hexdigest()
