"""Write documents as JSON with an indentation, as the package `json` does but in C."""

import json
from collections.abc import Collection
from typing import Any

_SCALARS = frozenset((str, int, float, bool, type(None)))
# Between items, and after names: in strings JSON escapes control characters.
_ITEM, _NAME = "\x01", "\x02"
_ENCODER = json.JSONEncoder(allow_nan=False, separators=(_ITEM, _NAME))


def indented_json(value: Any, margin: str = "\n") -> str:
    """Return what json.dumps(value, indent=1, allow_nan=False) returns.

    An indentation makes `json` write in Python, which takes ten times as long. Here C writes each
    container of scalars, and each table: a dictionary of dictionaries of scalars.

    Args:
        value: a document, whose keys are strings.
        margin: the end of a line and the indentation of the next line.

    Raises: ValueError if a number is not finite.
    """
    if not value or not isinstance(value, (dict, list, tuple)):
        return _ENCODER.encode(value)
    inner = margin + " "
    within: Collection[Any] = value.values() if isinstance(value, dict) else value
    if _are_scalars(within):
        text = _separated(_ENCODER.encode(value)[1:-1], inner)
    elif isinstance(value, dict) and all(
        type(x) is dict and _are_scalars(x.values()) for x in within
    ):
        text = _ENCODER.encode(value)[1:-2].replace("}" + _ITEM, f"{inner}}},{inner}")
        text = text.replace(_NAME + "{", f": {{{inner} ")
        text = _separated(text, inner + " ") + inner + "}"
    else:
        items = [indented_json(each, inner) for each in within]
        if isinstance(value, dict):
            items = [f"{_ENCODER.encode(k)}: {x}" for k, x in zip(value, items, strict=True)]
        text = f",{inner}".join(items)
    return f"{{{inner}{text}{margin}}}" if isinstance(value, dict) else f"[{inner}{text}{margin}]"


def _are_scalars(values: Collection[Any]) -> bool:
    return bool(values) and _SCALARS.issuperset(map(type, values))


def _separated(text: str, margin: str) -> str:
    return text.replace(_ITEM, f",{margin}").replace(_NAME, ": ")
