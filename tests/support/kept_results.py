"""The numbers of the last full `make papers`, which docs/results keeps."""

import json
from functools import cache

from twoway.paths import ROOT
from twoway.report.papers_tables import read_numbers

RESULTS = ROOT / "docs/results"
# The kernel of the kept numbers.
KERNEL: str = json.loads((RESULTS / "summary.json").read_text())["provenance"]["kernel"][0]


@cache
def kept_numbers() -> dict[str, dict[str, float | None]]:
    """Return each point's measured values by metric, in seven digits."""
    return read_numbers(RESULTS / "numbers")
