"""The UDP flows of a capture, as clib/datagrams.c counts them."""

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from capture_analysis.flow_table import FLOW, FlowTable

# Clocks of RTP's time stamps for which the jitter is counted (RFC 3551, and WebRTC's).
CLOCKS_HZ = (8000, 16000, 24000, 44100, 48000, 90000)
# The first streams of a direction are of RTP, by source; the others have a number at byte 0, or 8.
RTP_STREAMS, STREAMS = 4, 6


class Quic(IntEnum):
    """Kinds of QUIC packets (RFC 9000, 17), in the order of enum quic."""

    INITIAL = 0
    ZERO_RTT = 1
    HANDSHAKE = 2
    RETRY = 3
    NEGOTIATION = 4
    SHORT = 5


def _numbers(*names: str) -> list[tuple[str, str]]:
    return [(name, "<i8") for name in names]


# struct ca_stream.
STREAM = np.dtype(
    [
        *_numbers("source", "packets", "near", "expected", "late", "highest", "stamp", "ticks"),
        *_numbers("first_ns", "last_ns", "paced", "paced_ns"),
        ("jitter_ns", "<f8", len(CLOCKS_HZ)),
        ("jitter_most_ns", "<f8", len(CLOCKS_HZ)),
    ]
)
# struct ca_datagrams: one direction of a flow.
DATAGRAMS = np.dtype(
    [
        *_numbers("packets", "bytes", "frame_bytes", "largest"),
        *_numbers("first_ns", "last_ns", "gap_ns", "gap_at_ns"),
        ("ecn", "<i8", 4),
        ("quic", "<i8", len(Quic)),
        *_numbers("version"),
        ("ids", "<i8", 2),
        *_numbers("short_ns", "spin", "edges", "edge_ns", "spun", "spun_ns", "spun_least_ns"),
        ("streams", STREAM, STREAMS),
    ]
)


@dataclass(frozen=True)
class Datagrams:
    """The UDP flows of a capture.

    Attributes:
        flows: their ends.
        directions: shape (n, 2), of type DATAGRAMS: of the source's packets, and the others'.
        left_out: packets of further flows, for which there was no room.
    """

    flows: FlowTable
    directions: NDArray[np.void]
    left_out: int = 0

    def __len__(self) -> int:
        return len(self.flows)

    def packets(self) -> int:
        """Count all packets of UDP."""
        return int(self.directions["packets"].sum()) + self.left_out

    def quic(self) -> bool:
        """Tell whether a flow is of QUIC."""
        return bool(self.directions["version"].any())


NO_DATAGRAMS = Datagrams(FlowTable(np.zeros(0, FLOW)), np.zeros((0, 2), DATAGRAMS))
