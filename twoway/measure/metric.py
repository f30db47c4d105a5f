"""The interface of all estimators of a run's quantities."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum

from capture_analysis.definition import Definition


class Scope(Enum):
    """The object that a metric is measured on; it decides an estimator's arguments.

    RUN: `(analysis)`; such a metric's name is that of its definition alone.
    QUEUE: `(analysis, queue_view)`.
    CHANNEL: `(analysis, queue_view, slots)`, for queues that are DTM channels.
    CONNECTION: `(analysis, connection_view)`.
    DATAGRAMS: `(analysis, datagram_view)`, for UDP flows.
    PROGRAM: `(analysis, program)`.
    SENDER: `(analysis, program)`, for programs that name the UDP port that they send from.
    """

    RUN = "run"
    QUEUE = "queue"
    CHANNEL = "channel"
    CONNECTION = "connection"
    DATAGRAMS = "datagrams"
    PROGRAM = "program"
    SENDER = "sender"


Measure = Callable[..., Sequence[float]]


@dataclass(frozen=True)
class Estimator:
    """A function that computes some quantities of a run.

    Attributes:
        scope: the object that it measures.
        definitions: the quantities that it returns, in order.
        measure: the function; NaN stands for an undefined value.
    """

    scope: Scope
    definitions: tuple[Definition, ...]
    measure: Measure


def estimates(scope: Scope, *definitions: Definition) -> Callable[[Measure], Estimator]:
    """Register a function as the estimator of some quantities; a decorator."""

    def made(measure: Measure) -> Estimator:
        return Estimator(scope, definitions, measure)

    return made
