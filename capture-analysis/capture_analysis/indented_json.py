"""Write documents as indented JSON.

Python's own encoder in C does not indent, and the one in Python takes five times as long.
"""

import ctypes
import json
from typing import Any

from capture_analysis import clib


def indented(document: dict[str, Any]) -> str:
    """Format a document as `json.dumps` does with indent=1 and allow_nan=False; in C.

    Raises: ValueError if a number is not finite.
    """
    flat = json.dumps(document, allow_nan=False, separators=(",", ": ")).encode("ascii")
    indent = clib.load().ca_indent
    text = ctypes.create_string_buffer(indent(flat, len(flat), None))
    indent(flat, len(flat), text)
    return text.raw.decode("ascii")
