"""metrics.json: a run's metrics by name."""

import math
from collections.abc import Iterator
from typing import Any

from twoway.contract.expression import with_derived
from twoway.contract.metrics import Metric, Metrics
from twoway.measure.analysis import Analysis
from twoway.measure.fidelity import fidelity
from twoway.measure.metric import Estimator, Scope
from twoway.measure.real_time import ClockError
from twoway.measure.registry import of_scope
from twoway.measure.undeclared_flows import found_flows

Measured = dict[str, Metric]


def compute(analysis: Analysis) -> Metrics:
    """Compute all of metrics.json but the revision of the analysis."""
    manifest = analysis.run.manifest
    metrics = _with_errors(_measure_places(analysis), analysis)
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
        error = 0.0 if metric.value is None else clock.bound_error(name, metric.value, metric.unit)
        limited = error if math.isfinite(error) else None
        found[name] = metric.model_copy(update={"error": limited})
    return found


def compute_one(analysis: Analysis, name: str) -> Metric | None:
    """Compute one metric of a run, without its error; None if the run has none of that name."""
    family, dot, place = name.partition(".")
    for scope, suffix, measured_on in _places(analysis):
        for estimator in of_scope(scope) if suffix == dot + place else ():
            if family in (each.name for each in estimator.definitions):
                return _values(estimator, suffix, measured_on)[name]
    return None


def _measure_places(analysis: Analysis) -> Measured:
    found: Measured = {}
    for scope, suffix, measured_on in _places(analysis):
        for estimator in of_scope(scope):
            found |= _values(estimator, suffix, measured_on)
    return found


def _places(analysis: Analysis) -> Iterator[tuple[Scope, str, tuple[Any, ...]]]:
    """List all objects that are measured: scope, end of the metrics' names, and arguments."""
    yield Scope.RUN, "", (analysis,)
    for name, queue in analysis.queues.items():
        yield Scope.QUEUE, f".{name}", (analysis, queue)
        if queue.slots:
            yield Scope.CHANNEL, f".{name}", (analysis, queue, queue.slots)
    for name, connection in analysis.connections.items():
        yield Scope.CONNECTION, f".{name}", (analysis, connection)
    for name, datagrams in analysis.datagrams.items():
        yield Scope.DATAGRAMS, f".{name}", (analysis, datagrams)
    for program in analysis.run.manifest.programs:
        yield Scope.PROGRAM, f".{program.name}", (analysis, program)
    for program in analysis.senders:
        yield Scope.SENDER, f".{program.name}", (analysis, program)


def _values(estimator: Estimator, suffix: str, measured_on: tuple[Any, ...]) -> Measured:
    values = zip(estimator.definitions, estimator.measure(*measured_on), strict=True)
    return {f"{each.name}{suffix}": _metric(value, each.unit) for each, value in values}


def _metric(value: float, unit: str) -> Metric:
    number = float(value)
    return Metric(value=number if math.isfinite(number) else None, unit=unit)
