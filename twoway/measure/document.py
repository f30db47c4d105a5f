"""metrics.json: a run's metrics by name, and verdicts on them."""

import math
from typing import Any

from capture_analysis.errors import AnalysisError

from twoway.contract.metrics import ExpectationRow, Metric, Metrics
from twoway.contract.verdict import Bounds, Expected, Verdict, judge, nothing_told, verdict_of
from twoway.measure.analysis import Analysis
from twoway.measure.fidelity import fidelity
from twoway.measure.metric import Scope, of_scope
from twoway.measure.real_time import ClockError

Measured = dict[str, Metric]


def compute(analysis: Analysis) -> Metrics:
    """Compute all of metrics.json but the revision of the analysis.

    An expectation that cannot be told on the run's clock counts neither for nor against the
    verdict, but a run none of whose expectations can be told does not pass.

    Raises: AnalysisError if an expectation names a metric that does not exist.
    """
    manifest = analysis.run.manifest
    metrics = _measured(analysis)
    error = None if analysis.run.exact_clock else ClockError(analysis)
    expect = tuple(_row(each, metrics, error) for each in manifest.experiment.expect)
    checks = tuple(fidelity(analysis))
    return Metrics(
        experiment=manifest.experiment.id,
        run=manifest.run,
        spec_sha256=manifest.spec_sha256,
        backend=manifest.backend,
        clock_source=manifest.clock_source,
        kernel=manifest.kernel.release,
        metrics=metrics,
        expect=expect,
        fidelity=checks,
        pass_=not nothing_told(expect)
        and all(verdict_of(row) is not Verdict.FAIL for row in (*expect, *checks)),
    )


def _measured(analysis: Analysis) -> Measured:
    found = _of(Scope.RUN, "", analysis)
    for name, queue in analysis.queues.items():
        found |= _of(Scope.QUEUE, f".{name}", analysis, queue)
        if queue.slots:
            found |= _of(Scope.CHANNEL, f".{name}", analysis, queue, queue.slots)
    for name, connection in analysis.connections.items():
        found |= _of(Scope.CONNECTION, f".{name}", analysis, connection)
    return found


def _of(scope: Scope, suffix: str, *measured_on: Any) -> Measured:
    return {
        f"{each.name}{suffix}": _metric(value, each.unit)
        for estimator in of_scope(scope)
        for each, value in zip(estimator.definitions, estimator.measure(*measured_on), strict=True)
    }


def _metric(value: float, unit: str) -> Metric:
    number = float(value)
    return Metric(value=number if math.isfinite(number) else None, unit=unit)


def _row(expected: Expected, metrics: Measured, error: ClockError | None) -> ExpectationRow:
    """Make an expectation's row: measurement, verdict, and limit if any."""
    name = expected.metric
    if name not in metrics:
        raise AnalysisError(f'expect: no metric "{name}"; there are: {", ".join(sorted(metrics))}')
    measured, unit = metrics[name].value, metrics[name].unit
    off = 0.0 if error is None or measured is None else error.of(name, measured, unit)
    verdict = judge(expected, measured, off)
    limited = error is not None and measured is not None and verdict is not Verdict.PASS
    return ExpectationRow(
        **{field: getattr(expected, field) for field in Bounds.model_fields},
        metric=name,
        measured=measured,
        unit=unit,
        source=expected.source,
        why=expected.why,
        pass_=verdict is Verdict.PASS,
        supported=None if error is None else verdict is not Verdict.CANNOT_TELL,
        limit=_limit(off) if limited else None,
    )


def _limit(off: float) -> str:
    if math.isfinite(off):
        return f"real time: off by up to {off:.2g} by itself"
    return "real time: not to be measured on this clock"
