"""The interface of all kinds of traffic."""

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True)
class Span:
    """The facts of an experiment that a kind of traffic needs.

    Attributes:
        seconds: time from the flow's start to its end.
        mtu_bytes: size of a full IP packet.
        segment_bytes: the payload of a full segment.
        seed: the seed of its random numbers, from the run's seed and the flow's name.
    """

    seconds: float
    mtu_bytes: int
    segment_bytes: int
    seed: int = 1


class Traffic:
    """The data of a flow. Subclasses are pydantic models of the field's value.

    Attributes:
        FIELD: the flow's field.
        DESCRIPTION: what the field means, for the schema.
    """

    FIELD: ClassVar[str]
    DESCRIPTION: ClassVar[str]

    @property
    def payload_bytes(self) -> int | None:
        """The payload of each connection; None if unlimited, or if `arrivals` gives it."""
        return None

    @property
    def given_seed(self) -> int | None:
        """The seed that the field names; None if it names none, or nothing is random."""
        return None

    def problems(self, span: Span) -> list[str]:  # noqa: ARG002 - for subclasses
        """List contradictions with the experiment, each as ".FIELD: ..."."""
        return []

    def arrivals(self, span: Span) -> list[tuple[float, int]] | None:  # noqa: ARG002 - likewise
        """List the connections: start in s after the flow's start, and payload in bytes.

        Returns: None if the flow has `count` connections that all start with it.
        """
        return None

    def source_options(self, span: Span) -> list[str]:  # noqa: ARG002 - likewise
        """List the options that make `stream send` write such data."""
        return []

    def packet_mbit(self, span: Span) -> float | None:  # noqa: ARG002 - likewise
        """Compute the mean rate of its IP packets, for theories.

        Returns: None if only the path limits the rate.
        """
        return None
