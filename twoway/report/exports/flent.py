"""A data file of Flent, version 4 of its format, as flent 2 writes and reads it.

Flent finds its plots by a test's name and the names of the series. `rrul_be_nflows` is its test of
any number of TCP connections in both directions: "TCP download BE::N", "TCP upload BE::N", and
their sums and means. Samples of TCP_INFO take the place of ss's in the raw values of a series.
"""

import gzip
import json
from datetime import UTC, datetime
from typing import Any

import numpy as np
from capture_analysis.pictures.figure import FloatArray

from twoway.report.exports import Format
from twoway.report.series import ConnectionSeries, RunSeries

TEST = "rrul_be_nflows"
VERSION = 4
UNIT = "Mbits/s"  # Flent's word for Mbit/s
WAYS = ("download", "upload")


def encode(run: RunSeries) -> bytes:
    """Write the goodput of each connection and the samples of its sender.

    A connection from a host to one that the topology lists later is a download, as in the profiles
    of access lines; any other is an upload. Goodput is at the end of its interval. There is no
    ping. Times are those of the run's clock, so that equal runs have equal files.
    """
    ways = {
        direction: [each for each in run.connections if _way(run, each) == direction]
        for direction in WAYS
    }
    results: dict[str, list[float]] = {}
    raw, about = {}, {}
    for direction, connections in ways.items():
        for number, series in enumerate(connections, 1):
            name = f"TCP {direction} BE::{number}"
            results[name] = series.goodput_mbit.tolist()
            raw[name] = _raw(run, series)
            about[name] = {"UNITS": UNIT, "CONNECTION": series.connection.name}
        if connections:
            goodputs = [series.goodput_mbit for series in connections]
            results[f"TCP {direction} sum"] = _sum(goodputs).tolist()
            results[f"TCP {direction} avg"] = (_sum(goodputs) / len(goodputs)).tolist()
    results["TCP totals"] = _sum([each.goodput_mbit for each in run.connections]).tolist()
    document = {
        "version": VERSION,
        "metadata": {**_metadata(run, ways), "SERIES_META": about},
        "x_values": ((run.edges_ns[1:] - run.edges_ns[0]) / 1e9).tolist(),
        "results": results,
        "raw_values": raw,
    }
    return gzip.compress(json.dumps(document, indent=1, allow_nan=False).encode(), mtime=0)


def _way(run: RunSeries, series: ConnectionSeries) -> str:
    hosts, connection = run.manifest.nodes.hosts, series.connection
    return WAYS[hosts.index(connection.from_) > hosts.index(connection.to)]


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


def _metadata(run: RunSeries, ways: dict[str, list[ConnectionSeries]]) -> dict[str, Any]:
    manifest, first = run.manifest, run.connections[0].connection
    start = datetime.fromtimestamp(manifest.clock.start_ns / 1e9, UTC)
    time = start.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    length_s = float(run.edges_ns[-1] - run.edges_ns[0]) / 1e9
    return {
        "NAME": TEST,
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
        "DATA_FILENAME": f"{manifest.experiment.id}{FORMAT.suffix}",
        "IP_VERSION": 6 if ":" in first.source else 4,
        "KERNEL_NAME": "Linux",
        "KERNEL_RELEASE": manifest.kernel.release,
        "TEST_PARAMETERS": {
            f"{direction}_streams": len(found) for direction, found in ways.items()
        },
    }


FORMAT = Format("flent", ".flent.gz", "Flent's data file, format version 4", encode)
