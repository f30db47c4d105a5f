"""A page as a browser reads it."""

import re
from pathlib import Path


def page_text(path: Path) -> str:
    """Read a page's HTML with one space for all white space, and none between two elements."""
    return re.sub(r">\s+(?=<)", ">", re.sub(r"\s+", " ", path.read_text("utf-8")))
