"""The interface of all estimators of a run's quantities."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, Flag, auto
from types import MappingProxyType

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


class HostError(Flag):
    """An effect of a real clock's host on a metric, besides that of the metric's unit.

    LEVEL: it is a queue's highest or lowest level, which depends on the timing of bursts.
    MEAN: it is a mean of whole numbers, which may move by less than one.
    SPACING: it moves in proportion to the spacing of ACKs.
    BUNCH: the spacing of ACKs joins or splits the bunches that it counts.
    """

    LEVEL = auto()
    MEAN = auto()
    SPACING = auto()
    BUNCH = auto()


BY_UNIT = HostError(0)
Measure = Callable[..., Sequence[float]]
HostErrors = Mapping[Definition, HostError]


@dataclass(frozen=True)
class Estimator:
    """A function that computes some quantities of a run.

    Attributes:
        scope: the object that it measures.
        definitions: the quantities that it returns, in order.
        measure: the function; NaN stands for an undefined value.
        host_errors: the quantities that a real clock's host moves otherwise than by their unit.
    """

    scope: Scope
    definitions: tuple[Definition, ...]
    measure: Measure
    host_errors: HostErrors


def estimates(
    scope: Scope, *definitions: Definition, host_errors: HostErrors = MappingProxyType({})
) -> Callable[[Measure], Estimator]:
    """Register a function as the estimator of some quantities; a decorator."""

    def made(measure: Measure) -> Estimator:
        return Estimator(scope, definitions, measure, host_errors)

    return made
