"""Names of a sweep's points: the same in specs, folders and reports."""

from typing import Any


def label(value: Any) -> str:
    """Write a value of a sweep's axis as it stands in names and tables."""
    if isinstance(value, list):
        return "+".join(label(each) for each in value)
    if isinstance(value, bool):
        return "on" if value else "off"
    return f"{value:g}" if isinstance(value, float) else str(value)
