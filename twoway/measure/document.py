"""metrics.json: a run's metrics by name, and verdicts on them."""

import math
from typing import Any

from capture_analysis.errors import AnalysisError

from twoway.contract.verdict import FIELDS, Verdict, judge, nothing_told, verdict_of
from twoway.measure.analysis import Analysis
from twoway.measure.fidelity import fidelity
from twoway.measure.metric import Scope, of_scope
from twoway.measure.real_time import ClockError

Metrics = dict[str, dict[str, Any]]


def compute(analysis: Analysis) -> dict[str, Any]:
    """Compute all of metrics.json.

    An expectation that cannot be told on the run's clock counts neither for nor against "pass",
    but a run none of whose expectations can be told does not pass.

    Raises: AnalysisError if an expectation names a metric that does not exist.
    """
    manifest = analysis.run.manifest
    metrics = _measured(analysis)
    error = None if analysis.run.exact_clock else ClockError(analysis)
    expect = [_row(e, metrics, error) for e in manifest["experiment"]["expect"]]
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
        "pass": not nothing_told(expect)
        and all(verdict_of(row) is not Verdict.FAIL for row in expect + checks),
    }


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
        f"{each.name}{suffix}": _metric(value, each.unit)
        for estimator in of_scope(scope)
        for each, value in zip(estimator.definitions, estimator.measure(*measured_on), strict=True)
    }


def _metric(value: float, unit: str) -> dict[str, Any]:
    """Make a metric's entry; an undefined value is null.

    No ACK or no busy period makes a metric undefined.
    """
    number = float(value)
    return {"value": number if math.isfinite(number) else None, "unit": unit}


def _row(expectation: dict[str, Any], metrics: Metrics, error: ClockError | None) -> dict[str, Any]:
    """Make an expectation's row: measurement, verdict, and limit if any."""
    name = expectation["metric"]
    if name not in metrics:
        raise AnalysisError(f'expect: no metric "{name}"; there are: {", ".join(sorted(metrics))}')
    measured, unit = metrics[name]["value"], metrics[name]["unit"]
    said = {field: expectation.get(field) for field in FIELDS}
    row = {
        "metric": name,
        "measured": measured,
        "unit": unit,
        **said,
        "source": expectation["source"],
        "why": expectation["why"],
    }
    if error is None:
        return row | {"pass": judge(said, measured) is Verdict.PASS}
    off = 0.0 if measured is None else error.of(name, measured, unit)
    verdict = judge(said, measured, off)
    row |= {"pass": verdict is Verdict.PASS, "supported": verdict is not Verdict.CANNOT_TELL}
    return row if row["pass"] or measured is None else row | {"limit": _limit(off)}


def _limit(off: float) -> str:
    if math.isfinite(off):
        return f"real time: off by up to {off:.2g} by itself"
    return "real time: not to be measured on this clock"
