"""Base class of the estimators from two captures."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from capture_analysis.definition import Definition
from capture_analysis.one_capture.from_one import Values

if TYPE_CHECKING:  # a command for one capture loads the estimators, too
    from capture_analysis.two_captures.packets_between import AckGaps, Crossings
    from capture_analysis.two_captures.path_facts import PathFacts
    from capture_analysis.two_captures.queue_levels import Levels

__all__ = ["FromPair", "Step", "Values"]


@dataclass(frozen=True)
class Step:
    """The next packets whose fate has become known.

    Attributes:
        crossings: packets from the first tap to the second, and back.
        ack_gaps: gaps between the ACKs in each direction of the path.
        levels: packets and bytes in the queue of each direction; None before its first packet.
    """

    crossings: "tuple[Crossings, Crossings]"
    ack_gaps: "tuple[AckGaps, AckGaps]"
    levels: "tuple[Levels | None, Levels | None]"


class FromPair:
    """Estimator of quantities from two captures of a path, step by step.

    Its state does not grow with the number of packets, and does not depend on step ends.

    Args:
        facts: facts of the path between the taps.
    """

    title: ClassVar[str]
    vantage: ClassVar[str] = "the ends of the path"
    # Name of the report's picture that shows the metric best.
    picture: ClassVar[str] = "spacing-change"
    per_direction: ClassVar[Sequence[Definition]] = ()
    per_path_direction: ClassVar[Sequence[Definition]] = ()
    per_pair: ClassVar[Sequence[Definition]] = ()

    def __init__(self, facts: "PathFacts") -> None:
        self.facts = facts
        self.start()

    def start(self) -> None:
        """Create the empty counts and sums."""

    def add(self, step: Step) -> None:
        """Take the next packets."""

    def finish(self) -> None:
        """Take streaks that are open at the captures' end; called before the results."""

    def of_direction(self, direction: int) -> Values:
        """Return the quantities of `per_direction`: numbers, or reasons for missing ones."""
        del direction
        return {}

    def of_path_direction(self, direction: int) -> Values:
        """Return the quantities of `per_path_direction`: numbers, or reasons for missing ones."""
        del direction
        return {}

    def of_pair(self) -> Values:
        """Return the quantities of `per_pair`: numbers, or reasons for missing ones."""
        return {}
