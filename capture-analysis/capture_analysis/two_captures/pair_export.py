"""Write the packets of two captures as Parquet or CSV.

One row per packet, with its times at both taps.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from capture_analysis.flow_table import FlowTable
from capture_analysis.overriding import override
from capture_analysis.table_file import TableFile
from capture_analysis.tracking import Kind
from capture_analysis.two_captures.from_pair import Step
from capture_analysis.two_captures.packets_between import ABSENT, Crossings
from capture_analysis.two_captures.pair import Sink

SCHEMA = pa.schema(
    [
        ("flow", pa.uint32()),
        ("half", pa.uint8()),
        ("kind", pa.string()),
        ("seq", pa.uint32()),
        ("ack", pa.uint32()),
        ("payload_bytes", pa.uint32()),
        ("frame_bytes", pa.uint32()),
        ("flags", pa.uint16()),
        ("a_ns", pa.int64()),
        ("b_ns", pa.int64()),
        ("delay_ns", pa.int64()),
        ("passes_first", pa.string()),
        ("seen", pa.string()),
    ]
)
_KINDS = pa.array([kind.name.lower() for kind in Kind])
_TAPS = pa.array(["a", "b"])
_SEEN = pa.array(["both", "a", "b"])


class PairsFile(TableFile, Sink):
    """A file of packets with both their times; it gets its name when complete.

    Rows come in blocks, first one direction of the path, then the other; within each in the order
    of the first tap. `b_ns` is on the first capture's clock; times and delay are null if a capture
    lacks the packet.

    Args:
        target: a name that ends in its format: .parquet or .csv.

    Raises: AnalysisError for the reasons of TableFile.
    """

    def __init__(self, target: Path) -> None:
        super().__init__(target, SCHEMA)

    @override
    def add(self, step: Step, flows: FlowTable) -> None:
        for crossings in step.crossings:
            if len(crossings.sent):
                self.write(table(crossings))


def table(crossings: Crossings) -> pa.Table:
    """Convert the packets in one direction of the path to an Arrow table of SCHEMA."""
    rows, direction = crossings.sent, crossings.path_direction
    first_ns, second_ns = rows["first_ns"].copy(), rows["second_ns"].copy()
    no_first, no_second = first_ns == ABSENT, second_ns == ABSENT
    times = [(first_ns, no_first), (second_ns, no_second)]
    (a_ns, no_a), (b_ns, no_b) = times[direction], times[1 - direction]
    columns: dict[str, Any] = {
        name: pa.array(rows[name].copy())
        for name in ("flow", "half", "seq", "ack", "payload_bytes", "frame_bytes", "flags")
    }
    columns["kind"] = _texts(rows["kind"], _KINDS)
    columns["a_ns"], columns["b_ns"] = pa.array(a_ns, mask=no_a), pa.array(b_ns, mask=no_b)
    delay_ns = np.where(no_first | no_second, 0, second_ns - first_ns)
    columns["delay_ns"] = pa.array(delay_ns, mask=no_first | no_second)
    columns["passes_first"] = _texts(np.full(len(rows), direction), _TAPS)
    columns["seen"] = _texts(np.where(no_b, 1, np.where(no_a, 2, 0)), _SEEN)
    return pa.table({f.name: columns[f.name] for f in SCHEMA}).cast(SCHEMA)


def _texts(number: np.ndarray[Any, Any], texts: pa.Array) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(number.astype(np.int8)), texts)
