"""Tables of theories that are too slow to compute at each reading of an experiment.

A row has the parameters that a theory needs from a setup, and the values by metric name. A table
only saves time: `twoway compute` writes it again, and missing rows are computed on demand.
"""

import json
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "computed"
DIGITS = 6
Values = dict[str, float]


def path_of(theory: str) -> Path:
    """Return the file with a theory's table."""
    return FOLDER / f"{theory}.json"


def look_up(theory: str, parameters: Mapping[str, Any]) -> Values | None:
    """Find a theory's values for these parameters; None if they are not in its table."""
    return _rows(theory).get(_key(parameters))


def write(theory: str, rows: Iterable[tuple[str, Mapping[str, Any], Values]]) -> Path:
    """Write a theory's table: the point, its parameters and its values, one line each."""
    lines = [
        json.dumps({"point": point, "parameters": parameters, "values": _round_values(values)})
        for point, parameters, values in rows
    ]
    path = path_of(theory)
    path.write_text("[\n" + ",\n".join(lines) + "\n]\n", encoding="utf-8")
    _rows.cache_clear()
    return path


def _round_values(values: Values) -> Values:
    return {name: float(f"{value:.{DIGITS}g}") for name, value in sorted(values.items())}


@cache
def _rows(theory: str) -> dict[str, Values]:
    path = path_of(theory)
    if not path.exists():
        return {}
    rows = json.loads(path.read_text(encoding="utf-8"))
    return {_key(row["parameters"]): row["values"] for row in rows}


def _key(parameters: Mapping[str, Any]) -> str:
    return json.dumps(parameters, sort_keys=True)
