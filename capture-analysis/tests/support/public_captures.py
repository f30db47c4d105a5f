"""Compare public captures with the diagnosis of a human.

    python public_captures.py FOLDER

Looks for the captures of public_captures.tsv below a folder, by checksum, whatever their names.
None is committed here: the table has their addresses. What is right is a filter of `flows --where`
that a connection must match, or the limit of the direction with most data ("limit: application").
"""

import hashlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from capture_analysis.one_capture.connection_filter import select_connections
from capture_analysis.one_capture.connections import Connections
from capture_analysis.one_capture.document import data_direction, document
from capture_analysis.one_capture.single import Measured, measure
from capture_analysis.reading.capture import Capture

TABLE = Path(__file__).with_suffix(".tsv")


class Diagnosed(NamedTuple):
    """A row of the table."""

    checksum: str
    right: str
    address: str
    diagnosis: str


def diagnosed(table: Path = TABLE) -> list[Diagnosed]:
    """Read the table."""
    lines = table.read_text(encoding="utf-8").splitlines()
    return [Diagnosed(*line.split("\t")) for line in lines if not line.startswith("#")]


def compared(folder: Path, table: Path = TABLE) -> Iterator[tuple[Diagnosed, str]]:
    """Yield each capture with "right", "differs" or "not there"."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    found = {hashlib.sha256(path.read_bytes()).hexdigest(): path for path in files}
    for each in diagnosed(table):
        if path := found.get(each.checksum):
            yield each, "right" if _holds(measure(Capture(path)), each.right) else "differs"
        else:
            yield each, "not there"


def _holds(measured: Measured, right: str) -> bool:
    if not right.startswith("limit: "):
        return bool(select_connections(Connections(measured), right).any())
    (flow,) = document(measured, 1)["flows"]
    sizes = [flow[name]["payload"]["value"] if flow[name] else 0 for name in _DIRECTIONS]
    main = data_direction(*sizes)
    limits = [flow["limits"][name]["value"] for name in _DIRECTIONS if main in {name, "both"}]
    return right.removeprefix("limit: ") in limits


_DIRECTIONS = ("forward", "backward")


def main() -> None:
    """Print a line for each capture, and the sums."""
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    results = list(compared(Path(sys.argv[1])))
    for each, result in results:
        name = each.address.rpartition("/")[2]
        sys.stdout.write(f"{result:9} {name:42} {each.right} ({each.diagnosis})\n")
    counts = [sum(result == which for _, result in results) for which in ("right", "differs")]
    missing = len(results) - sum(counts)
    sys.stdout.write(f"{counts[0]} right, {counts[1]} differ, {missing} not there\n")


if __name__ == "__main__":
    main()
