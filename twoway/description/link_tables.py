"""Tables by which a link's rate, delay, losses and limit of a queue change together.

A table is a CSV file with a header, the same columns in Parquet, a trace of TheaterQ (Ottens et al.
2025), or a trace of mahimahi. It becomes the schedules of the direction that names it, which all
start with the traffic.
"""

import csv
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from itertools import pairwise
from pathlib import Path
from typing import Any

from twoway.contract.files_below import find_below
from twoway.description.parsing import show_text
from twoway.messages import suggest

_MOST_BYTES, _MOST_ROWS, _MOST_NAMES = 1 << 24, 100_000, 9
_TIMES = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
_WHOLE_U32 = 2**32 - 1
# The units of each column, with their factors to ns, bit/s, millionths of a percent, and packets.
_UNITS: Mapping[str, Mapping[str, int]] = {
    "time": _TIMES,
    "rate": {"bit": 1, "kbit": 10**3, "mbit": 10**6, "gbit": 10**9},
    "delay": _TIMES,
    "loss": {"percent": 10**6, "share": 10**8},
    "queue": {"packets": 1},
}
# The least and the most of each column, in the smallest unit: those of the schedules' fields.
_RANGES: Mapping[str, tuple[int, int]] = {
    "time": (0, 10**14),
    "rate": (0, 10**11),
    "delay": (0, 2_592_000 * 10**9),
    "loss": (0, 10**8),
    "queue": (1, 10**7),
}
_COLUMNS = {f"{what}_{unit}": (what, by) for what, of in _UNITS.items() for unit, by in of.items()}
_SIMPLEST = ("time_s", "rate_mbit", "delay_ms", "loss_percent", "queue_packets")
# Names, and values that a row may have, of TheaterQ's columns that no schedule has.
_NOT_HERE = ("jitter", "dup_prob", "dup_delay")
_SIMPLE = ("keep_us", "delay_ns", "rate_bit", "loss_u32", "queue_packets")
_EXTENDED = (
    *("keep_us", "delay_ns", "jitter", "rate_bit", "loss_u32", "queue_packets"),
    *("dup_prob", "dup_delay", "route_id"),
)
# A row of a file: its line, and its cells by column.
Row = tuple[int, Mapping[str, Any]]
# A row in whole numbers: its line, and values by column, without units.
Step = tuple[int, Mapping[str, int]]


def with_table(direction: str, fields: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Complete the fields of a direction with the schedules of its table.

    Args:
        direction: its name, which selects rows of a table with the column `direction`.
        fields: the fields as they are written, with `table`.
        folder: the profile's folder.

    Raises: ValueError with a sentence after the field `table`.
    """
    name = fields["table"]
    try:
        found = _schedules(name, find_below(folder, name), direction)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise ValueError(f": {name}: {reason}") from error
    constant = {"rate": "rate_mbit", "delay": "delay_ms"}
    for own in (*found, *(constant[field] for field in found.keys() & constant)):
        if fields.get(own) is not None:
            raise ValueError(f": {name}: has a column for {own}, which is given as well")
    return {**fields, **found}


def _schedules(name: str, path: Path, direction: str) -> dict[str, Any]:
    """Read a table as the fields of a direction."""
    if path.stat().st_size > _MOST_BYTES:
        raise ValueError(f"more than {_MOST_BYTES >> 20} MiB")
    if path.suffix == ".parquet":
        return _fields(_steps(_of_parquet(path), direction))
    stripped = [line.strip() for line in path.read_text("utf-8-sig").splitlines()]
    lines = [(n, line) for n, line in enumerate(stripped, 1) if line and line[0] != "#"]
    numbers = [(n, line.split(",")) for n, line in lines if line[0].isdigit()]
    first = [line for _, line in lines[:1] if not line[0].isdigit()]
    words = next(csv.reader(first, skipinitialspace=True), None)
    if words and not words[0].lower().startswith("keep"):
        return _fields(_steps(_of_csv(words, lines[1:]), direction))
    if numbers and len(numbers[0][1]) == 1:
        return {"rate": {"mahimahi": name}}
    return _fields(_of_theaterq(numbers))


def _of_csv(header: Sequence[str], lines: Sequence[tuple[int, str]]) -> Iterator[Row]:
    names = [word.strip() for word in header]
    for number, line in lines:
        cells = next(csv.reader([line], skipinitialspace=True))
        if len(cells) != len(names):
            raise ValueError(f"line {number}: has {len(cells)} columns of {len(names)}")
        yield number, dict(zip(names, cells, strict=True))


def _of_parquet(path: Path) -> Iterator[Row]:
    import pyarrow as pa  # noqa: PLC0415 - takes long to load
    from pyarrow import parquet  # noqa: PLC0415

    try:
        file = parquet.ParquetFile(path)
        if file.metadata.num_rows > _MOST_ROWS:
            raise ValueError(f"more than {_MOST_ROWS} rows")
        yield from enumerate(file.read().to_pylist(), 1)
    except pa.ArrowException as error:
        raise ValueError(f"no Parquet: {show_text(str(error), 100)}") from error


def _of_theaterq(lines: Sequence[tuple[int, Sequence[str]]]) -> list[Step]:
    """Read TheaterQ's trace, in which a row says for how long it holds; losses are of 2^32 - 1."""
    found: list[Step] = []
    time_ns = 0
    for number, cells in lines:
        names = {len(_SIMPLE): _SIMPLE, len(_EXTENDED): _EXTENDED, 8: _EXTENDED[:8]}.get(len(cells))
        if not names:
            raise ValueError(f"line {number}: TheaterQ has 5, 8 or 9 columns, got {len(cells)}")
        pairs = zip(names, cells, strict=True)
        row = {
            name: _whole(f"line {number}: {name}", cell, *_COLUMNS.get(name, ("", 1)))
            for name, cell in pairs
        }
        for name in _NOT_HERE:
            if row.get(name):
                raise ValueError(f"line {number}: {name}: no schedule has it, got {row[name]}")
        for name in ("keep_us", "rate_bit"):
            if not row[name]:
                raise ValueError(f"line {number}: {name}: must be above 0, got 0")
        loss = round(Decimal(row["loss_u32"] * 10**8) / _WHOLE_U32)
        own = {"rate": row["rate_bit"], "delay": row["delay_ns"], "queue": row["queue_packets"]}
        found.append((number, {"time": time_ns, "loss": loss, **own}))
        time_ns += row["keep_us"] * 1000
    return found


def _steps(rows: Iterator[Row], direction: str) -> list[Step]:
    """Convert the rows of a direction to whole numbers."""
    found: list[Step] = []
    others: dict[str, None] = {}
    for number, row in rows:
        _check_names(row)
        if row.get("direction", direction) == direction:
            values = {
                _COLUMNS[name][0]: _whole(f"line {number}: {name}", cell, *_COLUMNS[name])
                for name, cell in row.items()
                if name in _COLUMNS
            }
            found.append((number, values))
        elif len(others) < _MOST_NAMES:
            others[show_text(str(row["direction"]))] = None
        if len(found) > _MOST_ROWS:
            raise ValueError(f"more than {_MOST_ROWS} rows")
    if not found:
        theirs = f"; its rows are of {', '.join(others)}" if others else ""
        raise ValueError(f"has no row for this direction{theirs}")
    return found


def _check_names(row: Mapping[str, Any]) -> None:
    """Refuse a column that is unknown, or is there twice."""
    for name in row:
        if name != "direction" and name not in _COLUMNS:
            what = name.partition("_")[0]
            units = ", ".join(f"{what}_{unit}" for unit in _UNITS.get(what, ()))
            others = f"; write its unit: {units}" if units else _suggest(name)
            raise ValueError(f"column {show_text(repr(name))}: unknown{others}")
    columns = [_COLUMNS[name][0] for name in row if name in _COLUMNS]
    for each in ("time", *columns):
        if columns.count(each) != 1:
            raise ValueError(f"must have one column for {each}: {', '.join(row)}")


def _suggest(name: str) -> str:
    """Suggest a column for an unknown one."""
    return suggest(name, _COLUMNS) or f"; there are {', '.join(_SIMPLEST)} and other units of these"


def _whole(where: str, cell: Any, what: str, factor: int) -> int:
    """Convert a cell to the column's smallest unit.

    Raises: ValueError if it is no number, out of range, or no whole multiple of that unit.
    """
    least, most = _RANGES.get(what, (0, 2**63))
    try:
        value = Decimal(str(cell).strip()) * factor
    except InvalidOperation:
        value = Decimal(-1)
    if not (value.is_finite() and least <= value <= most):
        between = f"a number of {least / factor:g} to {most / factor:g}"
        raise ValueError(f"{where}: must be {between}, got {show_text(repr(cell))}")
    if value != int(value):
        smallest = "ns, bit/s, a millionth of a % or a packet"
        raise ValueError(f"{where}: is finer than {smallest}, got {cell}")
    return int(value)


def _fields(steps: Sequence[Step]) -> dict[str, Any]:
    """Make schedules of steps; a row with the values of the one before is no step."""
    if not steps:
        raise ValueError("has no row for this direction")
    _check_order(steps)
    found: dict[str, Any] = {}
    for field, unit in (("rate", 1e6), ("delay", 1e6), ("loss", 1e6), ("queue", None)):
        rows = [(n, row["time"], row[field]) for n, row in steps if field in row]
        kept = [row for k, row in enumerate(rows) if not k or row[2] != rows[k - 1][2]]
        if kept and (field != "loss" or any(value for _, _, value in kept)):
            values = [(at / 1e9, value / unit if unit else value) for _, at, value in kept]
            found[field] = {"schedule": [list(each) for each in values]}
    if limits := found.pop("queue", None):
        found["queue_packets"] = max(packets for _, packets in limits["schedule"])
        if len(limits["schedule"]) > 1:
            found["queue_limit"] = limits
    return found


def _check_order(steps: Sequence[Step]) -> None:
    """Refuse times that do not ascend from 0, and a link that never begins or ends with a rate."""
    for (_, before), (number, row) in pairwise(steps):
        if row["time"] <= before["time"]:
            raise ValueError(f"line {number}: time must be later than that of the row before")
    for number, row in (steps[0], steps[-1]):
        if row.get("rate") == 0:
            raise ValueError(f"line {number}: rate: the first and the last must be above 0, got 0")
    if steps[0][1]["time"]:
        raise ValueError(f"line {steps[0][0]}: time: the first is 0, got {steps[0][1]['time']} ns")
