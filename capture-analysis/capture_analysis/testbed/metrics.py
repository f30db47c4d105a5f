"""metrics.json: every number of a run under its name, and the verdict on what was expected."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np

from capture_analysis import ack_compression
from capture_analysis.errors import AnalysisError
from capture_analysis.testbed import dtm, throughput
from capture_analysis.testbed.analysis import Analysis, ConnectionView, QueueView
from capture_analysis.testbed.fidelity import fidelity
from capture_analysis.testbed.queues import correlation

Metrics = dict[str, dict[str, Any]]


def compute(analysis: Analysis) -> dict[str, Any]:
    """The whole of metrics.json.

    Raises: AnalysisError if an expectation names a metric that does not exist.
    """
    manifest = analysis.run.manifest
    metrics = _run_metrics(analysis)
    for direction, queue in analysis.queues.items():
        metrics.update(_queue_metrics(analysis, direction, queue))
        if queue.slots:
            metrics.update(_channel_metrics(analysis, direction, queue, queue.slots))
    for name, connection in analysis.connections.items():
        metrics.update(_connection_metrics(analysis, name, connection))
    expect = [_verdict(e, metrics) for e in manifest["experiment"]["expect"]]
    checks = fidelity(analysis)
    return {
        "experiment": manifest["experiment"]["id"],
        "run": manifest["run"],
        "spec_sha256": manifest["spec_sha256"],
        "backend": manifest["backend"],
        "kernel": manifest["kernel"]["release"],
        "metrics": metrics,
        "expect": expect,
        "fidelity": checks,
        "pass": all(row["pass"] for row in expect + checks),
    }


def write(folder: Path, document: dict[str, Any]) -> None:
    """Write metrics.json, whole or not at all."""
    partial = folder / ".metrics.json"
    partial.write_text(json.dumps(document, indent=1, allow_nan=False) + "\n", encoding="utf-8")
    partial.replace(folder / "metrics.json")


def _metric(value: float, unit: str) -> dict[str, Any]:
    """A metric; what is undefined (no ack, no busy period) is null, not a number."""
    number = float(value)
    return {"value": number if math.isfinite(number) else None, "unit": unit}


def _run_metrics(analysis: Analysis) -> Metrics:
    run = analysis.run
    epochs = analysis.congestion_epochs
    drops = epochs.drops
    levels = [view.all_packets for view in analysis.queues.values()]
    return {
        "congestion_epochs": _metric(len(drops), "1"),
        "drops_per_epoch": _metric(drops.mean() if len(drops) else math.nan, "packets"),
        "single_victim_epochs": _metric(epochs.single_victim_share(), "1"),
        "alternating_victims": _metric(epochs.alternating_share(), "1"),
        "queue_correlation": _metric(
            correlation(levels[0], levels[1], run.steady_ns, run.stop_ns)
            if len(levels) == 2
            else math.nan,
            "1",
        ),
    }


def _queue_metrics(analysis: Analysis, direction: str, view: QueueView) -> Metrics:
    run = analysis.run
    steady = (run.steady_ns, run.stop_ns)
    busy = analysis.busy(view)
    drops = analysis.drops(view)
    data_drops = len(drops.data())
    segments = busy.segments
    return {
        f"utilisation.{direction}": _metric(throughput.utilisation(view.passed, *steady), "1"),
        f"queue_peak.{direction}": _metric(view.all_packets.peak(*steady), "packets"),
        f"queue_peak_data.{direction}": _metric(view.data_packets.peak(*steady), "packets"),
        f"queue_mean.{direction}": _metric(view.all_packets.mean(*steady), "packets"),
        f"busy_periods.{direction}": _metric(len(segments), "1"),
        f"busy_period_segments.{direction}": _metric(
            np.median(segments) if len(segments) else math.nan, "segments"
        ),
        f"busy_period_cycle.{direction}": _metric(busy.cycle_s(), "s"),
        f"drops_data.{direction}": _metric(data_drops, "packets"),
        f"drops_ack.{direction}": _metric(len(drops) - data_drops, "packets"),
    }


def _channel_metrics(
    analysis: Analysis, direction: str, view: QueueView, slots: dtm.Slots
) -> Metrics:
    run = analysis.run
    steady = (run.steady_ns, run.stop_ns)
    held = slots.within(*steady)
    capacity = slots.mean(*steady) * dtm.SLOT_BIT / 1e6
    used = capacity * throughput.utilisation(view.passed, *steady)
    changes = slots.changes(slots.start_ns, run.stop_ns)
    first_s = (changes[0] - run.start_ns) / 1e9 if len(changes) else math.nan
    return {
        f"slots_mean.{direction}": _metric(slots.mean(*steady), "slots"),
        f"slots_min.{direction}": _metric(held.min(), "slots"),
        f"slots_max.{direction}": _metric(held.max(), "slots"),
        f"capacity.{direction}": _metric(capacity, "Mbit/s"),
        f"capacity_unused.{direction}": _metric(capacity - used, "Mbit/s"),
        f"reallocations.{direction}": _metric(len(slots.changes(*steady)), "1"),
        f"first_reallocation.{direction}": _metric(first_s, "s"),
    }


def _connection_metrics(analysis: Analysis, name: str, view: ConnectionView) -> Metrics:
    run, acks = analysis.run, view.acks
    goodput = analysis.goodput_bit(view)
    ratio = ack_compression.ack_spacing_ratio(acks.sent_ns, acks.arrived_ns)
    ratio = ratio[~np.isnan(ratio)]
    bunches = ack_compression.bunch_sizes(acks.arrived_ns, view.ack_service_ns)
    sent_bunches = ack_compression.bunch_sizes(acks.sent_ns, view.ack_service_ns)
    factors = ack_compression.compression_factors(acks, view.data_service_ns)
    segments = len(run.steady(view.arrived.data()))
    compressed = (ratio < ack_compression.COMPRESSED_BELOW).mean() if len(ratio) else math.nan
    return {
        f"goodput.{name}": _metric(goodput / 1e6, "Mbit/s"),
        f"throughput.{name}": _metric(
            throughput.link_bytes(run.steady(view.arrived.data()), view.forward.queue)
            * 8e3
            / run.window_ns,
            "Mbit/s",
        ),
        f"queued_mean.{name}": _metric(view.queued.mean(run.steady_ns, run.stop_ns), "packets"),
        f"efficiency.{name}": _metric(
            throughput.efficiency(goodput, view.arrived, view.forward.queue), "1"
        ),
        f"ack_to_data.{name}": _metric(view.acks_sent / segments if segments else math.nan, "1"),
        f"ack_spacing_ratio.{name}": _metric(np.median(ratio) if len(ratio) else math.nan, "1"),
        f"acks_compressed.{name}": _metric(compressed, "1"),
        f"ack_bunch_mean.{name}": _metric(bunches.mean() if len(bunches) else math.nan, "acks"),
        f"ack_bunch_max.{name}": _metric(bunches.max(initial=0), "acks"),
        f"ack_bunch_max_sent.{name}": _metric(sent_bunches.max(initial=0), "acks"),
        f"compression_factor.{name}": _metric(
            np.median(factors) if len(factors) else math.nan, "1"
        ),
        f"compression_factor_bound.{name}": _metric(
            ack_compression.factor_bound(view.data_service_ns, view.ack_service_ns)
            if view.data_service_ns and view.ack_service_ns and view.has_one_rate
            else math.nan,
            "1",
        ),
        f"acks_lost.{name}": _metric(view.acks_lost, "acks"),
    }


def _verdict(expectation: dict[str, Any], metrics: Metrics) -> dict[str, Any]:
    name = expectation["metric"]
    if name not in metrics:
        raise AnalysisError(f'expect: no metric "{name}"; there are: {", ".join(sorted(metrics))}')
    measured = metrics[name]["value"]
    difference = math.inf if measured is None else abs(measured - expectation["value"])
    # Decimal fractions have no exact binary form: 1.98 is within 0.02 of 2.
    rounding = 4 * math.ulp(expectation["value"])
    return {
        "metric": name,
        "measured": measured,
        "expected": expectation["value"],
        "unit": metrics[name]["unit"],
        "tolerance": expectation["tolerance"],
        "source": expectation["source"],
        "why": expectation["why"],
        "pass": difference <= expectation["tolerance"] + rounding,
    }
