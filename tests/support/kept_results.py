"""The numbers of the last full `make papers`, which docs/results keeps."""

import csv
import json
from functools import cache

from twoway.paths import ROOT

RESULTS = ROOT / "docs/results"
# The kernel of the kept numbers.
KERNEL: str = json.loads((RESULTS / "summary.json").read_text())["provenance"]["kernel"][0]


@cache
def _tables() -> dict[str, dict[str, str]]:
    """Return measured values by point and metric."""
    found: dict[str, dict[str, str]] = {}
    for path in sorted((RESULTS / "numbers").glob("*.csv")):
        with path.open() as file:
            for row in csv.DictReader(file):
                found.setdefault(row["point"], {})[row["metric"]] = row["measured"]
    return found


def kept_points() -> list[str]:
    """List the points that have values."""
    return list(_tables())


def kept_rows(point: str) -> dict[str, str]:
    """Return a point's measured values by metric, in seven digits."""
    return _tables().get(point, {})
