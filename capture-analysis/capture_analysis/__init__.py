"""Measure ACK compression, efficiency and queues from packet captures.

From a notebook or a program:

    import capture_analysis

    capture_analysis.read_columns("a.pcap") # a numpy array for each column, packet by packet
    capture_analysis.read_table("a.pcap") # the same as an Arrow table
    capture_analysis.analyse("a.pcap") # every metric, as `capture-analysis metrics` prints
    capture_analysis.match("a.pcap", "b.pcap") # two captures of one path, as `match` prints

`analyse` and `match` read captures larger than memory; the other two hold all packets at once.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from os import PathLike

    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

# Functions import their own modules, so that a command loads only the modules that it needs.


def read_columns(
    path: "str | PathLike[str]", *, inside: bool = False
) -> "dict[str, NDArray[np.generic]]":
    """Read the TCP packets of a capture and their roles in their connections.

    Args:
        path: a capture.
        inside: True to read the TCP in tunnels besides the TCP outside; by default it is read only
            if there is no TCP outside.

    Returns: arrays of shape (n,) by name, in file order: those of `columns.Packets` and of
        `tracking.Tracked`, whose docstrings give units.
    Raises: AnalysisError if the file is not a capture.
    """
    import numpy as np

    from capture_analysis.columns import COLUMN_TYPES
    from capture_analysis.reading.capture import Capture
    from capture_analysis.tracking import TRACKED_TYPES, Tracker

    capture, follow = Capture(Path(path), inside=inside), Tracker()
    parts: dict[str, list[Any]] = {
        name: [np.zeros(0, kind)] for name, kind in (COLUMN_TYPES | TRACKED_TYPES).items()
    }
    for packets in capture.chunks():
        for chunk in (packets, follow.track(packets, capture.flows)):
            for name, column in vars(chunk).items():
                parts[name].append(column.copy())
    return {name: np.concatenate(each) for name, each in parts.items()}


def read_table(path: "str | PathLike[str]", *, inside: bool = False) -> "pa.Table":
    """Read the TCP packets of a capture as an Arrow table.

    Args: see `read_columns`.

    Returns: one row per packet, in file order; null for a field that a packet lacks.
    Raises: AnalysisError if the file is not a capture.
    """
    from capture_analysis.export import whole_table
    from capture_analysis.reading.capture import Capture

    return whole_table(Capture(Path(path), inside=inside))


def analyse(
    path: "str | PathLike[str]",
    *,
    rate_mbit: float | None = None,
    ack_rate_mbit: float | None = None,
    inside: bool = False,
    flows: int = 100,
) -> dict[str, Any]:
    """Compute every metric of a capture.

    Args:
        path: a capture.
        rate_mbit: rate of the bottleneck in the direction of most data; estimated if not given.
        ack_rate_mbit: rate of the bottleneck in the opposite direction; estimated if not given.
        inside: see `read_columns`.
        flows: number of connections to list, those with most payload in one direction first.

    Returns: the document that `capture-analysis metrics` prints.
    Raises: AnalysisError if the file is not a capture or has no TCP packet.
    """
    from capture_analysis.one_capture.document import analyse as analyse_capture
    from capture_analysis.one_capture.single import Given

    return analyse_capture(Path(path), Given(rate_mbit, ack_rate_mbit, inside=inside), flows)


def match(
    a: "str | PathLike[str]",
    b: "str | PathLike[str]",
    *,
    same_clock: bool = False,
    inside: bool = False,
    flows: int = 100,
) -> dict[str, Any]:
    """Measure a path from two captures of it; times are on the clock of `a`.

    Args:
        a: a capture.
        b: a capture at another point of the path.
        same_clock: True if one clock stamped both: no offset and no drift are estimated.
        inside: see `read_columns`.
        flows: number of connections to list, those with most data packets in one direction first.

    Returns: the document that `capture-analysis match` prints.
    Raises: AnalysisError if a file is not a capture, or no packet is in both.
    """
    from capture_analysis.two_captures.pair_document import analyse_pair

    return analyse_pair(Path(a), Path(b), one_clock=same_clock, inside=inside, flows=flows)
