"""All estimators of a run's quantities, and the names of the quantities.

A metric's full name is that of its definition and, after a dot, the place where it is measured.
"""

from collections.abc import Iterable
from functools import cache

from capture_analysis.definition import Definition
from capture_analysis.discovery import modules_of

from twoway.measure import links, metrics
from twoway.measure.metric import Estimator, HostError, Scope


@cache
def all_estimators() -> tuple[Estimator, ...]:
    """List the estimators of the packages `metrics` and `links`, by module name."""
    modules = (*modules_of(metrics), *modules_of(links))
    return tuple(
        each
        for module in sorted(modules, key=lambda each: each.__name__.rpartition(".")[2])
        for each in vars(module).values()
        if isinstance(each, Estimator)
    )


def of_scope(scope: Scope) -> list[Estimator]:
    """List the estimators of one scope."""
    return [each for each in all_estimators() if each.scope is scope]


@cache
def definitions() -> dict[str, Definition]:
    """Return the definitions of all metrics of a run, by name."""
    return {each.name: each for found in all_estimators() for each in found.definitions}


@cache
def host_errors() -> dict[str, HostError]:
    """Return the declared errors on a real clock of those metrics that have one, by name."""
    return {
        definition.name: error
        for found in all_estimators()
        for definition, error in found.host_errors.items()
    }


def metric_names(
    queues: Iterable[str],
    connections: Iterable[str],
    channels: Iterable[str] = (),
    datagrams: Iterable[str] = (),
    programs: Iterable[str] = (),
    *,
    senders: Iterable[str] = (),
) -> list[str]:
    """List the names of all metrics of a run.

    Args:
        queues: directions of all queues.
        connections: names of connections.
        channels: directions of those queues that are DTM channels.
        datagrams: names of UDP flows.
        programs: names of programs.
        senders: names of those programs that name their UDP port.
    """
    measured_on = {
        Scope.RUN: [""],
        Scope.QUEUE: [f".{name}" for name in queues],
        Scope.CHANNEL: [f".{name}" for name in channels],
        Scope.CONNECTION: [f".{name}" for name in connections],
        Scope.DATAGRAMS: [f".{name}" for name in datagrams],
        Scope.PROGRAM: [f".{name}" for name in programs],
        Scope.SENDER: [f".{name}" for name in senders],
    }
    return [
        f"{definition.name}{suffix}"
        for scope, suffixes in measured_on.items()
        for suffix in suffixes
        for estimator in of_scope(scope)
        for definition in estimator.definitions
    ]
