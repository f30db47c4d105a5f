"""Digests that identify files."""

import hashlib
import re
from functools import cache
from pathlib import Path


@cache
def sha256(path: Path) -> str:
    """Hash a file that does not change while this process lives."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def module_identity(path: Path) -> dict[str, str]:
    """Read a kernel module's digest and the revision that modinfo shows."""
    found = re.search(rb"\0revision=([^\0]*)\0", path.read_bytes())
    return {"sha256": sha256(path), "revision": found[1].decode() if found else "unknown"}
