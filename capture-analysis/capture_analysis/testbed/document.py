"""metrics.json: every number of a run under its name, and the verdict on what was expected."""

import json
import math
from pathlib import Path
from typing import Any

from capture_analysis.errors import AnalysisError
from capture_analysis.testbed.analysis import Analysis
from capture_analysis.testbed.expectation import FIELDS, holds, margin
from capture_analysis.testbed.fidelity import fidelity
from capture_analysis.testbed.metric import Scope, of_scope
from capture_analysis.testbed.real_time import ClockError

Metrics = dict[str, dict[str, Any]]


def compute(analysis: Analysis) -> dict[str, Any]:
    """The whole of metrics.json.

    An expectation that the run's clock cannot support counts neither for nor against "pass".

    Raises: AnalysisError if an expectation names a metric that does not exist.
    """
    manifest = analysis.run.manifest
    metrics = _measured(analysis)
    expect = [_verdict(e, metrics) for e in manifest["experiment"]["expect"]]
    if not analysis.run.exact_clock:
        error = ClockError(analysis)
        expect = [row | _support(row, error) for row in expect]
    checks = fidelity(analysis)
    return {
        "experiment": manifest["experiment"]["id"],
        "run": manifest["run"],
        "spec_sha256": manifest["spec_sha256"],
        "backend": manifest["backend"],
        "clock_source": manifest["clock_source"],
        "kernel": manifest["kernel"]["release"],
        "metrics": metrics,
        "expect": expect,
        "fidelity": checks,
        "pass": all(row["pass"] or not row.get("supported", True) for row in expect + checks),
    }


def write(folder: Path, document: dict[str, Any]) -> None:
    """Write metrics.json, whole or not at all."""
    partial = folder / ".metrics.json"
    partial.write_text(json.dumps(document, indent=1, allow_nan=False) + "\n", encoding="utf-8")
    partial.replace(folder / "metrics.json")


def _measured(analysis: Analysis) -> Metrics:
    found = _of(Scope.RUN, "", analysis)
    for name, queue in analysis.queues.items():
        found |= _of(Scope.QUEUE, f".{name}", analysis, queue)
        if queue.slots:
            found |= _of(Scope.CHANNEL, f".{name}", analysis, queue, queue.slots)
    for name, connection in analysis.connections.items():
        found |= _of(Scope.CONNECTION, f".{name}", analysis, connection)
    return found


def _of(scope: Scope, suffix: str, *measured_on: Any) -> Metrics:
    return {
        f"{family}{suffix}": _metric(value, module.UNITS[family])
        for module in of_scope(scope)
        for family, value in module.measure(*measured_on).items()
    }


def _metric(value: float, unit: str) -> dict[str, Any]:
    """A metric; what is undefined (no ack, no busy period) is null, not a number."""
    number = float(value)
    return {"value": number if math.isfinite(number) else None, "unit": unit}


def _verdict(expectation: dict[str, Any], metrics: Metrics) -> dict[str, Any]:
    name = expectation["metric"]
    if name not in metrics:
        raise AnalysisError(f'expect: no metric "{name}"; there are: {", ".join(sorted(metrics))}')
    measured = metrics[name]["value"]
    said = {field: expectation.get(field) for field in FIELDS}
    return {
        "metric": name,
        "measured": measured,
        "unit": metrics[name]["unit"],
        **said,
        "source": expectation["source"],
        "why": expectation["why"],
        "pass": holds(said, measured),
    }


def _support(row: dict[str, Any], error: ClockError) -> dict[str, Any]:
    """Whether a clock that goes on while the machine works can tell if an expectation holds."""
    near = row["value"] if row["value"] is not None else row["measured"]
    needed = error.needs(row["metric"], near or 0, row["unit"])
    if needed <= margin(row, row["measured"]):
        return {"supported": True}
    return {"supported": False, "limit": f"real time: off by up to {needed:.2g} by itself"}
