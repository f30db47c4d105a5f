"""The interface of all kinds of traffic."""

from dataclasses import dataclass
from typing import ClassVar, Self


@dataclass(frozen=True)
class Span:
    """What a kind of traffic knows of its experiment.

    Attributes:
        seconds: from the flow's start to its end.
        mtu_bytes: a full IP packet.
        segment_bytes: the payload of a full segment.
    """

    seconds: float
    mtu_bytes: int
    segment_bytes: int


class Traffic:
    """A flow's data. Subclasses are pydantic models of the field's value.

    Attributes:
        FIELD: the flow's field.
        DESCRIPTION: what the field means, for the schema.
    """

    FIELD: ClassVar[str]
    DESCRIPTION: ClassVar[str]

    @property
    def payload_bytes(self) -> int | None:
        """What each connection has to send; None if unlimited, or if `arrivals` tells."""
        return None

    def problems(self, span: Span) -> list[str]:  # noqa: ARG002 - for subclasses
        """List contradictions with the experiment, each as ".FIELD: ..."."""
        return []

    def drawn_anew(self, later: int) -> Self:  # noqa: ARG002 - likewise
        """Return such traffic from a seed higher by `later`; itself if nothing is drawn."""
        return self

    def arrivals(self, span: Span) -> list[tuple[float, int]] | None:  # noqa: ARG002 - likewise
        """List starts, s after the flow's, and payloads, bytes, of connections.

        Returns: None if the flow has `count` connections, all from its start on.
        """
        return None

    def source_options(self, span: Span) -> list[str]:  # noqa: ARG002 - likewise
        """List the options by which a source, `stream` or the kernel's, writes such data."""
        return []

    def packet_mbit(self, span: Span) -> float | None:  # noqa: ARG002 - likewise
        """Compute the mean rate of its IP packets, for theories.

        Returns: None if only the path limits the rate.
        """
        return None
