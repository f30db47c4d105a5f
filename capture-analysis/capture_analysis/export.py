"""Packets as Parquet or CSV, for other tools: one row per TCP packet, in file order."""

from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from capture_analysis.columns import FlowTable, Mark, Packets
from capture_analysis.errors import AnalysisError
from capture_analysis.reading.capture import Capture
from capture_analysis.tracking import Kind, Tracked, tracker

# Columns of the capture that mean nothing by themselves: addresses and names stand for them.
_REPLACED = ("flow", "half", "marks", "kind")
# Tracked columns in which -1 stands for nothing, and the options that a packet may lack.
_NONE_IS_NEGATIVE = ("ack_bytes", "gap_ns", "rtt_ns")
_NEEDS_MARK = {
    "ts_value": Mark.TIMESTAMPS,
    "ts_echo": Mark.TIMESTAMPS,
    "sack_left": Mark.SACK,
    "sack_right": Mark.SACK,
}


def table(packets: Packets, tracked: Tracked, flows: FlowTable) -> pa.Table:
    """Packets as an Arrow table: their columns, what they mean, and their ends as text.

    Args:
        packets: shape (n,).
        tracked: the same packets.
        flows: their connections.

    Returns: n rows; null where a packet has no such thing. Units are in the columns' names.
    """
    columns: dict[str, Any] = {"flow": pa.array(packets.flow), **_ends(packets, flows)}
    for part in (packets, tracked):
        for name in (f.name for f in fields(part) if f.name not in _REPLACED):
            values = getattr(part, name)
            absent = None
            if name in _NONE_IS_NEGATIVE:
                absent = values < 0
            elif name in _NEEDS_MARK:
                absent = packets.marks & int(_NEEDS_MARK[name]) == 0
            columns[name] = pa.array(values, mask=absent)
    kinds = pa.array([kind.name.lower() for kind in Kind])
    columns["kind"] = pa.DictionaryArray.from_arrays(pa.array(tracked.kind.astype(np.int8)), kinds)
    return pa.table(columns)


def tables(capture: Capture) -> Iterator[pa.Table]:
    """A capture's packets, a chunk of it at a time; the next chunk overwrites the numbers."""
    follow = tracker()
    for packets in capture.chunks():
        tracked = follow.track(packets, capture.flows)
        yield _without_dictionaries(table(packets, tracked, capture.flows))


def whole_table(capture: Capture) -> pa.Table:
    """All packets of a capture at once."""
    parts = [part.take(pa.array(np.arange(part.num_rows))) for part in tables(capture)]
    return pa.concat_tables(parts or [_without_dictionaries(table(*_nothing(), capture.flows))])


def export(capture: Capture, target: Path) -> int:
    """Write a capture's packets, whole or not at all.

    Args:
        capture: what to read.
        target: the name's end says the format: .parquet or .csv.

    Returns: how many packets were written.
    Raises: AnalysisError if the name ends otherwise.
    """
    if target.suffix not in _WRITERS:
        raise AnalysisError(
            f'{target}: the name must end in {" or ".join(_WRITERS)}, got "{target.suffix}"'
        )
    partial = target.with_name(f".{target.name}.partial")
    rows = 0
    try:
        with _Output(partial, _WRITERS[target.suffix]) as output:
            for part in tables(capture):
                output.write(part)
                rows += part.num_rows
            if not rows:
                output.write(_without_dictionaries(table(*_nothing(), capture.flows)))
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)
    return rows


class _Output:
    """A file of tables, opened with the schema of the first."""

    def __init__(self, path: Path, writer: Callable[..., Any]) -> None:
        self._path = path
        self._open = writer
        self._writer: Any = None

    def __enter__(self) -> Self:
        return self

    def write(self, part: pa.Table) -> None:
        if self._writer is None:
            self._writer = self._open(str(self._path), part.schema)
        self._writer.write_table(part)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._writer is not None:
            self._writer.close()


_WRITERS: dict[str, Callable[..., Any]] = {
    ".parquet": lambda path, schema: pyarrow.parquet.ParquetWriter(
        path, schema, compression="zstd"
    ),
    ".csv": pyarrow.csv.CSVWriter,
}


def _without_dictionaries(part: pa.Table) -> pa.Table:
    """With plain texts: each chunk has its own dictionaries, and a column must have one."""
    schema = [
        (f.name, f.type.value_type if pa.types.is_dictionary(f.type) else f.type)
        for f in part.schema
    ]
    return part.cast(pa.schema(schema))


def _ends(packets: Packets, flows: FlowTable) -> dict[str, Any]:
    """Who sends each packet and who receives it: addresses and ports."""
    lanes, which = np.unique(packets.flow.astype(np.int64) * 2 + packets.half, return_inverse=True)
    ends = [(flows.source(lane // 2), flows.destination(lane // 2)) for lane in lanes.tolist()]
    columns = {}
    for at, who in enumerate(("sender", "receiver")):
        # Half 1 is what the destination sends.
        both = [pair[(lane + at) % 2] for lane, pair in zip(lanes.tolist(), ends, strict=True)]
        for field, (what, kind) in enumerate((("", pa.string()), ("_port", pa.uint16()))):
            texts = pa.array([end[field] for end in both], type=kind)
            columns[who + what] = pa.DictionaryArray.from_arrays(
                pa.array(which.astype(np.int32)), texts
            )
    return columns


def _nothing() -> tuple[Packets, Tracked]:
    from capture_analysis.columns import empty_columns  # noqa: PLC0415
    from capture_analysis.tracking import TRACKED_TYPES  # noqa: PLC0415

    return empty_columns(0), Tracked(*(np.zeros(0, kind) for kind in TRACKED_TYPES.values()))
