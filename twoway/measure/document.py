"""metrics.json: a run's metrics by name."""

import math
from typing import Any

from twoway.contract.expression import with_derived
from twoway.contract.metrics import Metric, Metrics
from twoway.measure.analysis import Analysis
from twoway.measure.fidelity import fidelity
from twoway.measure.found import found_flows
from twoway.measure.metric import Scope
from twoway.measure.real_time import ClockError
from twoway.measure.registry import of_scope

Measured = dict[str, Metric]


def compute(analysis: Analysis) -> Metrics:
    """Compute all of metrics.json but the revision of the analysis."""
    manifest = analysis.run.manifest
    metrics = _with_errors(_measured(analysis), analysis)
    every, _ = with_derived(metrics, manifest.experiment.metrics, manifest.point)
    return Metrics(
        experiment=manifest.experiment.id,
        run=manifest.run,
        measured_sha256=manifest.measured_sha256,
        backend=manifest.backend,
        clock_source=manifest.clock_source,
        kernel=manifest.kernel.release,
        metrics=every,
        found=found_flows(analysis.run, analysis.unfinished),
        fidelity=tuple(fidelity(analysis)),
    )


def _with_errors(metrics: Measured, analysis: Analysis) -> Measured:
    """Set each metric's error due to the run's clock; 0 in virtual time."""
    if analysis.run.exact_clock:
        return metrics
    clock = ClockError(analysis)
    found = {}
    for name, metric in metrics.items():
        error = 0.0 if metric.value is None else clock.of(name, metric.value, metric.unit)
        limited = error if math.isfinite(error) else None
        found[name] = metric.model_copy(update={"error": limited})
    return found


def _measured(analysis: Analysis) -> Measured:
    found = _of(Scope.RUN, "", analysis)
    for name, queue in analysis.queues.items():
        found |= _of(Scope.QUEUE, f".{name}", analysis, queue)
        if queue.slots:
            found |= _of(Scope.CHANNEL, f".{name}", analysis, queue, queue.slots)
    for name, connection in analysis.connections.items():
        found |= _of(Scope.CONNECTION, f".{name}", analysis, connection)
    for name, datagrams in analysis.datagrams.items():
        found |= _of(Scope.DATAGRAMS, f".{name}", analysis, datagrams)
    for program in analysis.run.manifest.programs:
        found |= _of(Scope.PROGRAM, f".{program.name}", analysis, program)
    for program in analysis.senders:
        found |= _of(Scope.SENDER, f".{program.name}", analysis, program)
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
