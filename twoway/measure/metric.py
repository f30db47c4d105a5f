"""The metrics there are, and their names: a family, a dot, and what it was measured on."""

from collections.abc import Iterable
from enum import Enum
from functools import cache
from types import ModuleType

from capture_analysis.discovery import modules_of

from twoway.measure import metrics


class Scope(Enum):
    """What a metric is measured on; the names of those of a run are the family alone.

    RUN: `measure(analysis)`.
    QUEUE: `measure(analysis, queue_view)`.
    CHANNEL: `measure(analysis, queue_view, slots)`, of queues that are DTM channels.
    CONNECTION: `measure(analysis, connection_view)`.
    """

    RUN = "run"
    QUEUE = "queue"
    CHANNEL = "channel"
    CONNECTION = "connection"


@cache
def all_metrics() -> tuple[ModuleType, ...]:
    """The modules in `metrics`, by name."""
    return modules_of(metrics)


def of_scope(scope: Scope) -> list[ModuleType]:
    """The metrics that are measured on one kind of thing."""
    return [module for module in all_metrics() if scope == module.SCOPE]


def metric_names(
    queues: Iterable[str], connections: Iterable[str], channels: Iterable[str] = ()
) -> list[str]:
    """Every metric of a run with these queues, connections and DTM channels."""
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
