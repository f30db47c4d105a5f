"""Exports: the time series of a run's connections in the file format of another tool."""

import gzip
import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from capture_analysis.errors import AnalysisError
from capture_analysis.pictures.figure import FloatArray

from twoway.contract.writing import written_aside
from twoway.errors import UsageError, in_a_sentence
from twoway.measure.analysis import Analysis
from twoway.report.paper_text import cells, csv_text
from twoway.report.series import ConnectionSeries, RunSeries, list_quantities, run_series

_FLENT_TEST, _FLENT_VERSION = "rrul_be_nflows", 4
_FLENT_SUFFIX = ".flent.gz"
_DIRECTIONS = ("download", "upload")


class Format(NamedTuple):
    """A file format.

    Attributes:
        suffix: the suffix of its files' names.
        help: its line in `twoway export --help`.
        encode: returns a file's content.
    """

    suffix: str
    help: str
    encode: Callable[[RunSeries], bytes]


def export_run(folder: Path, name: str, target: Path | None = None) -> Path:
    """Write the time series of a run's connections into a file, whole or not at all.

    Args:
        folder: a run's folder with manifest.json.
        name: the format's name.
        target: the file; the format's suffix is added to its name if missing; by default the
            experiment's id with the suffix, in `folder`.

    Returns: the file.
    Raises: AnalysisError if the run cannot be analysed; UsageError if it has no connection, or the
        target no folder.
    """
    form = FORMATS[name]
    with in_a_sentence(folder, AnalysisError):
        analysis = Analysis(folder)
    target = target or folder / f"{analysis.run.manifest.experiment.id}{form.suffix}"
    target = target.with_name(_with_suffix(target.name, form.suffix))
    if not target.parent.is_dir():
        raise UsageError(f"--to: {target.parent}: no such folder")
    if not analysis.run.connections:
        raise UsageError(
            f"{folder}: flows: an export has the series of each connection, and the run has none",
            "connections of programs are in the captures: `capture-analysis export` writes those",
        )
    with in_a_sentence(folder, AnalysisError):
        content = form.encode(run_series(analysis))
    try:
        with written_aside(target) as file:
            file.write(content)
    except OSError as error:
        raise UsageError(f"--to: {target}: {error.strerror}") from error
    return target


def _with_suffix(name: str, suffix: str) -> str:
    """Add the missing part of a suffix to a file's name: only .gz if it ends in .flent."""
    shared = next(n for n in range(len(suffix), -1, -1) if name.endswith(suffix[:n]))
    return name + suffix[shared:]


def _csv(run: RunSeries) -> bytes:
    """Write a row for each point of each series, for R, pandas and spreadsheets.

    Goodput is at the start of its interval. Times are s after the start of traffic.
    """
    rows = (
        cells((each.connection, each.quantity, each.unit, time_s, value))
        for each in list_quantities(run)
        for time_s, value in zip(each.time_s.tolist(), each.values.tolist(), strict=True)
    )
    return csv_text([("connection", "quantity", "unit", "time_s", "value"), *rows]).encode()


def _flent(run: RunSeries) -> bytes:
    """Write a data file of Flent: goodputs, and the samples of each connection's sender.

    Flent finds its plots by a test's name and the names of the series. `rrul_be_nflows` is its test
    of any number of TCP connections in both directions: "TCP download BE::N", "TCP upload BE::N",
    and their sums and means. Samples of TCP_INFO take the place of ss's in the raw values.

    A connection from a host to one that the topology lists later is a download, as in the profiles
    of access lines; any other is an upload. Goodput is at the end of its interval. There is no
    ping. Times are those of the run's clock, so that equal runs have equal files.
    """
    directions = {
        direction: [each for each in run.connections if _direction_of(run, each) == direction]
        for direction in _DIRECTIONS
    }
    results: dict[str, list[float]] = {}
    raw, about = {}, {}
    for direction, connections in directions.items():
        for number, series in enumerate(connections, 1):
            name = f"TCP {direction} BE::{number}"
            results[name] = series.goodput_mbit.tolist()
            raw[name] = _raw(run, series)
            about[name] = {"UNITS": "Mbits/s", "CONNECTION": series.connection.name}
        if connections:
            goodputs = [series.goodput_mbit for series in connections]
            results[f"TCP {direction} sum"] = _sum(goodputs).tolist()
            results[f"TCP {direction} avg"] = (_sum(goodputs) / len(goodputs)).tolist()
    results["TCP totals"] = _sum([each.goodput_mbit for each in run.connections]).tolist()
    document = {
        "version": _FLENT_VERSION,
        "metadata": {**_metadata(run, directions), "SERIES_META": about},
        "x_values": ((run.edges_ns[1:] - run.edges_ns[0]) / 1e9).tolist(),
        "results": results,
        "raw_values": raw,
    }
    return gzip.compress(json.dumps(document, indent=1, allow_nan=False).encode(), mtime=0)


def _direction_of(run: RunSeries, series: ConnectionSeries) -> str:
    hosts, connection = run.manifest.nodes.hosts, series.connection
    return _DIRECTIONS[hosts.index(connection.from_) > hosts.index(connection.to)]


def _sum(goodputs: list[FloatArray]) -> FloatArray:
    return np.asarray(np.sum(goodputs, axis=0))


def _raw(run: RunSeries, series: ConnectionSeries) -> list[dict[str, float]]:
    """Goodputs, then samples, each with its time in s since 1970."""
    ends_s, lengths_s = run.edges_ns[1:] / 1e9, np.diff(run.edges_ns) / 1e9
    goodputs = zip(ends_s.tolist(), lengths_s.tolist(), series.goodput_mbit.tolist(), strict=True)
    columns = (series.sampled_ns / 1e9, series.cwnd, series.smoothed_rtt_us / 1e3)
    samples = zip(*(each.tolist() for each in columns), strict=True)
    return [
        *({"t": t, "dur": length, "val": value} for t, length, value in goodputs),
        *({"t": t, "tcp_cwnd": cwnd, "tcp_rtt": rtt} for t, cwnd, rtt in samples),
    ]


def _metadata(run: RunSeries, directions: dict[str, list[ConnectionSeries]]) -> dict[str, Any]:
    manifest, first = run.manifest, run.connections[0].connection
    start = datetime.fromtimestamp(manifest.clock.start_ns / 1e9, UTC)
    time = start.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    length_s = float(run.edges_ns[-1] - run.edges_ns[0]) / 1e9
    return {
        "NAME": _FLENT_TEST,
        "TITLE": manifest.experiment.id,
        "NOTE": f"twoway, run {manifest.run}, identity {manifest.identity}",
        "TIME": time,
        "T0": time,
        "HOST": first.from_,
        "HOSTS": [first.from_],
        "LOCAL_HOST": first.to,
        "LENGTH": length_s,
        "TOTAL_LENGTH": length_s,
        "STEP_SIZE": length_s / (len(run.edges_ns) - 1),
        "DATA_FILENAME": f"{manifest.experiment.id}{_FLENT_SUFFIX}",
        "IP_VERSION": 6 if ":" in first.source else 4,
        "KERNEL_NAME": "Linux",
        "KERNEL_RELEASE": manifest.kernel.release,
        "TEST_PARAMETERS": {
            f"{direction}_streams": len(found) for direction, found in directions.items()
        },
    }


FORMATS: Mapping[str, Format] = {
    "flent": Format(_FLENT_SUFFIX, "Flent's data file, format version 4", _flent),
    "csv": Format(".csv", "a table with a row for each point", _csv),
}
