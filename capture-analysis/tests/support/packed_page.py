"""Read the figures of a page back as the page's script does."""

import base64
import gzip
import json
import re
from typing import Any

import numpy as np
from capture_analysis.pictures.figure import FloatArray


def plots(page: str) -> dict[str, Any]:
    """Return a page's traces by figure id, with their columns unpacked."""
    content = _embedded(page, "columns")
    described = json.loads(_text(page, "plots"))
    for plot in described["plots"].values():
        for trace in plot["traces"]:
            for axis in {"x", "y", "top"} & trace.keys():
                trace[axis] = unpacked(content, *described["columns"][trace[axis]])
    found: dict[str, Any] = described["plots"]
    return found


def unpacked(content: bytes, start: int, count: int, divisor: int) -> FloatArray:
    """Return a column of PackedColumns."""
    if divisor == 0:
        return np.frombuffer(content, "<f8", count, start)
    values, whole, at = [], 0, start
    for _ in range(count):
        number = weight = 0
        while True:
            number += (content[at] & 127) << weight
            weight += 7
            at += 1
            if content[at - 1] < 128:
                break
        whole += -(number + 1) // 2 if number % 2 else number // 2
        values.append(whole / divisor)
    return np.array(values, dtype=np.float64)


def _embedded(page: str, name: str) -> bytes:
    return gzip.decompress(base64.b64decode(_text(page, name)))


def _text(page: str, name: str) -> str:
    found = re.search(rf'<script type="[^"]*" id="{name}">(.*?)</script>', page, re.DOTALL)
    assert found, name
    return found[1]
