"""Comparing runs: parameters, metrics, and the first packet at which captures differ.

Packets are equal if they have the same time, direction, length, flags and window, and the same
sequence numbers relative to the connection's first: first numbers are random, and differ between
kernels.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from capture_analysis.columns import IntArray, Packets
from capture_analysis.errors import AnalysisError
from capture_analysis.flow_table import FlowTable

from twoway.contract.comparison import Comparison, Parting, Values
from twoway.contract.metrics import METRICS, Metric, Metrics
from twoway.manifest import Described, without_captures
from twoway.measure.run_folder import Run
from twoway.report.flow_table import FAMILIES

# Fields of a manifest that are not parameters, or follow from others.
_NOT_PARAMETERS = {
    *("run", "identity", "files", "timing", "clocks", "clock_offset_ns", "capture_drops"),
    *("connections", "interfaces", "nodes", "captures", "machines", "measured_sha256"),
    *("spec_sha256", "schema", "predictions", "claims", "findings", "matrix", "metrics", "figures"),
    *("point", "id", "title", "summary", "source", "sha256", "revision", "git", "digests"),
    *("clock", "queues"),
}
_FLAGS = "FSRPAUEC"


def compare(folders: Sequence[Path]) -> Comparison:
    """Compare analysed runs: the first with each of the others.

    Raises: AnalysisError if a folder is not an analysed run.
    """
    runs = [Run(folder) for folder in folders]
    metrics = [_metrics(folder) for folder in folders]
    everything = _side_by_side(metrics)
    ordered = {name: everything[name] for name in sorted(everything, key=_place)}
    differing = {name: row for name, row in ordered.items() if len(set(row)) > 1}
    left_out = tuple(n for n, folder in enumerate(folders) if without_captures(folder))
    shared = set.intersection(*(set(run.manifest.captures) for run in runs))
    if left_out:
        shared.clear()
    partings = [
        parting
        for number, other in enumerate(runs[1:], start=1)
        for parting in sorted(_partings(runs[0], other, number, shared), key=lambda p: p[0])
    ]
    parted = {parting.interface for _, parting in partings}
    return Comparison(
        runs=tuple(f"{run.manifest.experiment.id}/{run.manifest.run}" for run in runs),
        parameters=parameters([run.manifest for run in runs]),
        metrics={
            name: Values(
                values=tuple(each and each.value for each in row),
                unit=next(each.unit for each in row if each),
            )
            for name, row in differing.items()
        },
        common_metrics=len(everything) - len(differing),
        partings=tuple(parting for _, parting in partings),
        without_captures=left_out,
        common_captures=len(shared - parted),
    )


def _metrics(folder: Path) -> dict[str, Metric]:
    try:
        return Metrics.read(folder / METRICS).metrics
    except (OSError, ValueError) as error:
        raise AnalysisError(f"{folder}: {error}: `twoway report` makes it") from error


def _place(metric: str) -> int:
    """Place a metric: those of a run's table of flows first, in its order, then all others."""
    family = metric.partition(".")[0]
    return FAMILIES.index(family) if family in FAMILIES else len(FAMILIES)


def _side_by_side(documents: Sequence[Mapping[str, Any]]) -> dict[str, tuple[Any, ...]]:
    """Put the values of each key of several mappings side by side, in the keys' order."""
    keys = dict.fromkeys(key for document in documents for key in document)
    return {key: tuple(document.get(key) for document in documents) for key in keys}


def parameters(runs: Sequence[Described]) -> dict[str, Values]:
    """List the parameters in which runs differ, with their values in each run."""
    flat = [dict(_leaves(run.model_dump(mode="json", exclude=_NOT_PARAMETERS))) for run in runs]
    rows = _side_by_side(flat)
    return {path: Values(values=row) for path, row in rows.items() if len({*map(repr, row)}) > 1}


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """List the single values in a document, each with its path."""
    items: Any = ()
    if isinstance(value, dict):
        items = value.items()
    elif isinstance(value, list):
        items = [(e.get("name", i) if isinstance(e, dict) else i, e) for i, e in enumerate(value)]
    else:
        yield path, value
    for key, inner in items:
        if key not in _NOT_PARAMETERS:
            yield from _leaves(inner, f"{path}.{key}".lstrip("."))


def _partings(
    first: Run, second: Run, number: int, interfaces: set[str]
) -> Iterator[tuple[int, Parting]]:
    """Find the packets at which captures of two runs begin to differ, each with its time."""
    for interface in sorted(interfaces):
        sides = [(run.whole_capture(interface), run.flows) for run in (first, second)]
        columns = [_compared(packets, flows) for packets, flows in sides]
        common = min(len(packets) for packets, _ in sides)
        unequal = np.zeros(common, dtype=bool)
        for a, b in zip(*columns, strict=True):
            unequal |= a[:common] != b[:common]
        at = int(np.argmax(unequal)) if unequal.any() else common
        if all(at == len(packets) for packets, _ in sides):
            continue
        said = [_in_words(run, *side, at) for run, side in zip((first, second), sides, strict=True)]
        time_ns = min(int(p.time_ns[at]) for p, _ in sides if at < len(p))
        yield (
            time_ns,
            Parting(run=number, interface=interface, packet=at + 1, first=said[0], second=said[1]),
        )


def _compared(packets: Packets, flows: FlowTable) -> list[IntArray]:
    """List the columns by which packets are compared."""
    ports = [flows.rows[end][packets.flow] for end in ("source_port", "destination_port")]
    seq, ack = relative(packets, flows)
    columns = [packets.time_ns, packets.payload_bytes, packets.flags, packets.window, packets.half]
    return [np.asarray(column, dtype=np.int64) for column in (*columns, *ports, seq, ack)]


def relative(packets: Packets, flows: FlowTable) -> tuple[IntArray, IntArray]:
    """Count sequence and acknowledgement numbers from the first of each direction."""
    base = flows.rows["base"].astype(np.int64)
    own, others = base[packets.flow, packets.half], base[packets.flow, 1 - packets.half]
    acks = packets.flags & 0x10 != 0
    return (packets.seq - own) % 2**32, np.where(acks, (packets.ack - others) % 2**32, 0)


def _in_words(run: Run, packets: Packets, flows: FlowTable, at: int) -> str | None:
    """Write a packet as one line; None if the capture has no more packets."""
    if at >= len(packets):
        return None
    seq, ack = relative(packets.where(slice(at, at + 1)), flows)
    flow, half = int(packets.flow[at]), int(packets.half[at])
    both = (flows.source(flow), flows.destination(flow))
    sender, receiver = (f"{address}:{port}" for address, port in (both[half], both[1 - half]))
    flags = "".join(c for bit, c in enumerate(_FLAGS) if int(packets.flags[at]) >> bit & 1)
    length = int(packets.payload_bytes[at])
    return (
        f"{run.seconds(int(packets.time_ns[at])):.9f} s {sender} > {receiver} [{flags}] "
        f"seq {seq[0]}:{seq[0] + length} ack {ack[0]} window {packets.window[at]}"
    )
