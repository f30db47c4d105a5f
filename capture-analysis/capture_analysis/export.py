"""Export packets as Parquet or CSV: one row per TCP packet, in file order."""

from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from capture_analysis.columns import Mark, Packets, empty_columns
from capture_analysis.flow_table import FLOW, FlowTable
from capture_analysis.reading.capture import Capture
from capture_analysis.table_file import TableFile
from capture_analysis.tracking import TRACKED_TYPES, Kind, Tracked, Tracker

# Columns that readers of the file could not interpret: addresses, names and nulls replace them.
_REPLACED = ("flow", "half", "marks", "kind")
# Tracked columns in which -1 means "none", and the columns of options that a packet may lack.
_NONE_IS_NEGATIVE = ("ack_bytes", "gap_ns", "rtt_ns")
_NEEDS_MARK = {
    "ts_value": Mark.TIMESTAMPS,
    "ts_echo": Mark.TIMESTAMPS,
    "sack_left": Mark.SACK,
    "sack_right": Mark.SACK,
}


def table(packets: Packets, tracked: Tracked, flows: FlowTable) -> pa.Table:
    """Convert packets to an Arrow table, with roles and with ends as text.

    Args:
        packets: shape (n,).
        tracked: shape (n,), the tracker's columns for these packets.
        flows: the connections of these packets.

    Returns: n rows; null for a field that a packet lacks. Units are in the columns' names.
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
    columns["ecn"] = pa.array((packets.marks // int(Mark.ECT_1) & 3).astype(np.uint8))
    kinds = pa.array([kind.name.lower() for kind in Kind])
    columns["kind"] = pa.DictionaryArray.from_arrays(pa.array(tracked.kind.astype(np.int8)), kinds)
    return pa.table(columns)


def tables(capture: Capture) -> Iterator[pa.Table]:
    """Read a capture chunk by chunk into tables.

    Each table's numbers are overwritten by the next.
    """
    follow = Tracker()
    for packets in capture.chunks():
        tracked = follow.track(packets, capture.flows)
        yield _without_dictionaries(table(packets, tracked, capture.flows))


def whole_table(capture: Capture) -> pa.Table:
    """Read all packets of a capture into one table."""
    parts = [part.take(pa.array(np.arange(part.num_rows))) for part in tables(capture)]
    return pa.concat_tables([SCHEMA.empty_table(), *parts])


def export(capture: Capture, target: Path) -> int:
    """Write a capture's packets to a file; a failure leaves no file.

    Args:
        capture: the capture to read.
        target: a name that ends in its format: .parquet or .csv.

    Returns: the number of packets written.
    Raises: AnalysisError if the name has another ending, or the file cannot be written.
    """
    with TableFile(target, SCHEMA) as file:
        for part in tables(capture):
            file.write(part)
    return file.rows


def _without_dictionaries(part: pa.Table) -> pa.Table:
    """Replace dictionaries by plain texts.

    Dictionaries differ between chunks, and a column of a file must have one.
    """
    schema = [
        (f.name, f.type.value_type if pa.types.is_dictionary(f.type) else f.type)
        for f in part.schema
    ]
    return part.cast(pa.schema(schema))


def _ends(packets: Packets, flows: FlowTable) -> dict[str, Any]:
    """Return the address and port of each packet's sender and receiver."""
    lanes, which = np.unique(packets.directions, return_inverse=True)
    ends = [(flows.source(lane // 2), flows.destination(lane // 2)) for lane in lanes.tolist()]
    columns = {}
    for at, who in enumerate(("sender", "receiver")):
        # In half 1 the destination sends.
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
