"""qlog 0.3: an event for each sample of TCP_INFO, as draft-ietf-quic-qlog-main-schema has it.

TCP is not QUIC. Of qlog's events it has recovery:metrics_updated, and of that event's fields those
that mean the same: congestion_window and ssthresh, which Linux counts in segments, here times the
payload of a full one, and smoothed_rtt. bytes_in_flight is left out: what the samples have counts
segments that SACK has acknowledged, too.
"""

import json
from typing import Any

from twoway.report.format import Format
from twoway.report.series import ConnectionSeries, RunSeries


def encode(run: RunSeries) -> bytes:
    """Write a trace for each connection, at its sender, which opened it."""
    manifest = run.manifest
    document = {
        "qlog_version": "0.3",
        "qlog_format": "JSON",
        "title": manifest.experiment.id,
        "description": f"twoway, run {manifest.run}, identity {manifest.identity}",
        "traces": [_trace(run, series) for series in run.connections],
    }
    return json.dumps(document, indent=1, allow_nan=False).encode() + b"\n"


def _trace(run: RunSeries, series: ConnectionSeries) -> dict[str, Any]:
    connection, start_ns = series.connection, run.manifest.clock.start_ns
    times_ms = (series.sampled_ns - start_ns) / 1e6
    return {
        "title": connection.name,
        "vantage_point": {"name": connection.from_, "type": "client"},
        "common_fields": {
            "protocol_type": ["TCP"],
            "group_id": f"{connection.source}:{connection.source_port} > "
            f"{connection.destination}:{connection.port}",
            "time_format": "relative",
            "reference_time": start_ns / 1e6,
        },
        "events": [
            {"time": time_ms, "name": "recovery:metrics_updated", "data": data}
            for time_ms, data in zip(times_ms.tolist(), _metrics(series), strict=True)
        ],
    }


def _metrics(series: ConnectionSeries) -> list[dict[str, float]]:
    """List the data of each event, without thresholds that are infinite."""
    columns = (series.cwnd, series.ssthresh, series.smoothed_rtt_us)
    found = []
    for cwnd, ssthresh, rtt_us in zip(*(each.tolist() for each in columns), strict=True):
        data = {"smoothed_rtt": rtt_us / 1e3, "congestion_window": cwnd * series.segment_bytes}
        if ssthresh >= 0:
            data["ssthresh"] = ssthresh * series.segment_bytes
        found.append(data)
    return found


FORMAT = Format("qlog", ".qlog", "qlog 0.3, an event for each sample of TCP_INFO", encode)
