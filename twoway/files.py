"""Files that other stages read: written whole or not at all."""

import json
from pathlib import Path
from typing import Any


def write_json(path: Path, document: Any) -> None:
    """Write a JSON document, whole or not at all."""
    partial = path.with_name(f".{path.name}")
    partial.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    partial.replace(path)
