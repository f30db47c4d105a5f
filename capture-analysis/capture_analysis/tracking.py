"""What each packet means to its connection: new data or old, an ACK of what, after how long.

TEMPORARY: the contract; the trackers (native and Python) come.
"""

from dataclasses import dataclass, fields
from enum import IntEnum
from typing import Protocol

import numpy as np

from capture_analysis.columns import BoolArray, FlowTable, IntArray, Packets


class Kind(IntEnum):
    """What a packet is, `Tracked.kind`; each is one."""

    CONTROL = 0
    """SYN, RST, or a FIN without payload."""
    NEW_DATA = 1
    """Payload of which at least a byte lies above everything seen before in this half."""
    RETRANSMISSION = 2
    """Payload of which every byte was seen before."""
    LATE_DATA = 3
    """Payload below the highest byte seen, of which a byte was not seen before: it fills a hole.
    Reordered, or sent again after a loss before this point of the path."""
    PROBE = 4
    """Keep-alive or window probe: at most a byte of payload, just below the highest byte seen,
    and all of it acknowledged; or a byte beyond a closed window."""
    ACK = 5
    """No payload, acknowledges bytes that nothing before did."""
    DUPLICATE_ACK = 6
    """No payload, acknowledges what the last did, while data are outstanding; window unchanged,
    or with a SACK block (RFC 5681, 2; RFC 6675)."""
    WINDOW_UPDATE = 7
    """No payload, acknowledges what the last did, another window, no SACK block."""
    OLD_ACK = 8
    """No payload and none of these: acknowledges less than one before (reordered), or nothing
    new with nothing outstanding (answers a probe)."""
    COPY = 9
    """The same packet once more: captured twice, not sent twice."""


TRACKED_TYPES = {
    "seq_bytes": np.dtype("<i8"),
    "ack_bytes": np.dtype("<i8"),
    "gap_ns": np.dtype("<i8"),
    "rtt_ns": np.dtype("<i8"),
    "new_bytes": np.dtype("<u4"),
    "acked_bytes": np.dtype("<u4"),
    "in_flight_bytes": np.dtype("<u4"),
    "kind": np.dtype("u1"),
}


@dataclass(frozen=True)
class Tracked:
    """Columns beside `Packets`, shape (n,), in the types of TRACKED_TYPES.

    Attributes:
        seq_bytes: sequence number without wrap-around, from the half's base (FlowTable): of a
            connection seen from its SYN the first byte of data is 1.
        ack_bytes: the same for the acknowledgement number, from the other half's base; -1 if the
            packet has no ACK flag or nothing was seen of the other half.
        gap_ns: time since the packet before it of this half that, as this one, has payload, or
            as this one has none (SYN, FIN, RST and copies left out); -1 for the first and those.
        rtt_ns: of a packet that acknowledges new data, time since the newest segment that it
            acknowledges in full was first sent, unless that was sent again (Karn); otherwise -1.
        new_bytes: payload not seen before in this half.
        acked_bytes: payload of the other half acknowledged by nothing before.
        in_flight_bytes: highest byte seen less highest byte acknowledged, of the half whose data
            the packet is or acknowledges, after it.
        kind: see Kind.
    """

    seq_bytes: IntArray
    ack_bytes: IntArray
    gap_ns: IntArray
    rtt_ns: IntArray
    new_bytes: IntArray
    acked_bytes: IntArray
    in_flight_bytes: IntArray
    kind: IntArray

    def __len__(self) -> int:
        return len(self.kind)

    def where(self, rows: BoolArray | IntArray | slice) -> "Tracked":
        """The rows selected by a mask, by row numbers or by a slice."""
        return Tracked(*(getattr(self, f.name)[rows] for f in fields(self)))


class Tracker(Protocol):
    """Follows the connections of one capture, chunk by chunk."""

    def track(self, packets: Packets, flows: FlowTable) -> Tracked:
        """Columns for the next packets of the capture, in file order.

        The columns are overwritten by the next call.
        """
