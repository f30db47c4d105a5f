"""Packets as Parquet or CSV, for other tools: one row per TCP packet, in file order."""

from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from capture_analysis.columns import FLOW, FlowTable, Mark, Packets, empty_columns
from capture_analysis.reading.capture import Capture
from capture_analysis.table_file import TableFile
from capture_analysis.tracking import TRACKED_TYPES, Kind, Tracked, Tracker

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
    follow = Tracker()
    for packets in capture.chunks():
        tracked = follow.track(packets, capture.flows)
        yield _without_dictionaries(table(packets, tracked, capture.flows))


def whole_table(capture: Capture) -> pa.Table:
    """All packets of a capture at once."""
    parts = [part.take(pa.array(np.arange(part.num_rows))) for part in tables(capture)]
    return pa.concat_tables([SCHEMA.empty_table(), *parts])


def export(capture: Capture, target: Path) -> int:
    """Write a capture's packets, whole or not at all.

    Args:
        capture: what to read.
        target: the name's end says the format: .parquet or .csv.

    Returns: how many packets were written.
    Raises: AnalysisError if the name ends otherwise, or the file cannot be written.
    """
    with TableFile(target, SCHEMA) as file:
        for part in tables(capture):
            file.write(part)
    return file.rows


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
    return empty_columns(0), Tracked(*(np.zeros(0, kind) for kind in TRACKED_TYPES.values()))


# The columns of every table.
SCHEMA = _without_dictionaries(table(*_nothing(), FlowTable(np.zeros(0, dtype=FLOW)))).schema
