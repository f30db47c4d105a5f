"""Estimators of a run's quantities, and the quantities' names.

A metric's full name is that of its definition and, after a dot, where it is measured.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache

from capture_analysis.definition import Definition
from capture_analysis.discovery import modules_of

from twoway.measure import links, metrics


class Scope(Enum):
    """What a metric is measured on; decides the arguments of an estimator.

    RUN: `(analysis)`; such a metric's name is that of its definition alone.
    QUEUE: `(analysis, queue_view)`.
    CHANNEL: `(analysis, queue_view, slots)`, for queues that are DTM channels.
    CONNECTION: `(analysis, connection_view)`.
    DATAGRAMS: `(analysis, datagram_view)`, for UDP flows.
    PROGRAM: `(analysis, program)`.
    """

    RUN = "run"
    QUEUE = "queue"
    CHANNEL = "channel"
    CONNECTION = "connection"
    DATAGRAMS = "datagrams"
    PROGRAM = "program"


Measure = Callable[..., Sequence[float]]


@dataclass(frozen=True)
class Estimator:
    """A function that computes some quantities of a run.

    Attributes:
        scope: what it measures.
        definitions: the quantities that it returns, in order.
        measure: the function; NaN stands for an undefined value.
    """

    scope: Scope
    definitions: tuple[Definition, ...]
    measure: Measure


def estimates(scope: Scope, *definitions: Definition) -> Callable[[Measure], Estimator]:
    """Make a function the estimator of some quantities; a decorator."""

    def made(measure: Measure) -> Estimator:
        return Estimator(scope, definitions, measure)

    return made


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


def metric_names(
    queues: Iterable[str],
    connections: Iterable[str],
    channels: Iterable[str] = (),
    datagrams: Iterable[str] = (),
    programs: Iterable[str] = (),
) -> list[str]:
    """List the names of all metrics of a run.

    Args:
        queues: directions of all queues.
        connections: names of connections.
        channels: directions of those queues that are DTM channels.
        datagrams: names of UDP flows.
        programs: names of programs.
    """
    measured_on = {
        Scope.RUN: [""],
        Scope.QUEUE: [f".{name}" for name in queues],
        Scope.CHANNEL: [f".{name}" for name in channels],
        Scope.CONNECTION: [f".{name}" for name in connections],
        Scope.DATAGRAMS: [f".{name}" for name in datagrams],
        Scope.PROGRAM: [f".{name}" for name in programs],
    }
    return [
        f"{definition.name}{suffix}"
        for scope, suffixes in measured_on.items()
        for suffix in suffixes
        for estimator in of_scope(scope)
        for definition in estimator.definitions
    ]
