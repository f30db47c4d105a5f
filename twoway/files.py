"""Files that other stages read, written whole or not at all; and what identifies a file."""

import hashlib
import json
import re
from functools import cache
from pathlib import Path
from typing import Any


def write_json(path: Path, document: Any) -> None:
    """Write a JSON document, whole or not at all."""
    partial = path.with_name(f".{path.name}")
    partial.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    partial.replace(path)


@cache
def sha256(path: Path) -> str:
    """The digest of a file's content, which does not change while this process lives."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def module_identity(path: Path) -> dict[str, str]:
    """What a kernel module is, and what it says it was built from (modinfo's field revision)."""
    found = re.search(rb"\0revision=([^\0]*)\0", path.read_bytes())
    return {"sha256": sha256(path), "revision": found[1].decode() if found else "unknown"}
