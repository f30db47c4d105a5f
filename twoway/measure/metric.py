"""All metrics and their names: family, dot, place of measurement."""

from collections.abc import Iterable
from enum import Enum
from functools import cache
from types import ModuleType

from capture_analysis.discovery import modules_of

from twoway.measure import metrics


class Scope(Enum):
    """What a metric is measured on; decides the arguments of `measure`.

    RUN: `measure(analysis)`; such a metric's name is the family alone.
    QUEUE: `measure(analysis, queue_view)`.
    CHANNEL: `measure(analysis, queue_view, slots)`, for queues that are DTM channels.
    CONNECTION: `measure(analysis, connection_view)`.
    """

    RUN = "run"
    QUEUE = "queue"
    CHANNEL = "channel"
    CONNECTION = "connection"


@cache
def all_metrics() -> tuple[ModuleType, ...]:
    """List the modules of the package `metrics`, sorted by name."""
    return modules_of(metrics)


def of_scope(scope: Scope) -> list[ModuleType]:
    """List the metrics of one scope."""
    return [module for module in all_metrics() if scope == module.SCOPE]


def metric_names(
    queues: Iterable[str], connections: Iterable[str], channels: Iterable[str] = ()
) -> list[str]:
    """List the names of all metrics of a run.

    Args:
        queues: directions of all queues.
        connections: names of connections.
        channels: directions of those queues that are DTM channels.
    """
    measured_on = {
        Scope.QUEUE: list(queues),
        Scope.CHANNEL: list(channels),
        Scope.CONNECTION: list(connections),
    }
    names = [family for module in of_scope(Scope.RUN) for family in module.UNITS]
    return names + [
        f"{family}.{name}"
        for scope, things in measured_on.items()
        for name in things
        for module in of_scope(scope)
        for family in module.UNITS
    ]
