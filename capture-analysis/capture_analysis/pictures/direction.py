"""One direction of a connection in memory: data, and its ACKs."""

from dataclasses import dataclass

import numpy as np

from capture_analysis.columns import FLAG_RST, FLAG_SYN, BoolArray, IntArray, Packets
from capture_analysis.pictures.figure import FloatArray
from capture_analysis.tracking import Kind, Tracked

DATA_KINDS = (Kind.NEW_DATA, Kind.RETRANSMISSION, Kind.LATE_DATA, Kind.PROBE)
ACK_KINDS = (Kind.ACK, Kind.DUPLICATE_ACK, Kind.WINDOW_UPDATE, Kind.OLD_ACK)


@dataclass(frozen=True)
class Direction:
    """The packets and facts of a direction, from which figures are drawn.

    Attributes:
        name: both ends, the sender of the data first.
        half: the half that sends the data.
        origin_ns: the time that figures call 0.
        packets: packets of both halves, int64, in order of capture.
        tracked: their tracked columns, int64.
        window_shift: bits by which the window that the ACKs announce is scaled; None if the
            handshake was not seen.
        segment_bytes: payload of a full segment, 0 if unknown.
        data_service_ns: transmission time of a full segment on its bottleneck, None if unknown.
        ack_service_ns: transmission time of an ACK on its bottleneck, None if unknown.
        bound: bound of the compression factor, None if unknown.
        begins_ns: time from which on data flow, see `Overview.begins_ns`.
    """

    name: str
    half: int
    origin_ns: int
    packets: Packets
    tracked: Tracked
    window_shift: int | None = None
    segment_bytes: int = 0
    data_service_ns: float | None = None
    ack_service_ns: float | None = None
    bound: float | None = None
    begins_ns: int = 0

    def seconds(self, rows: BoolArray | IntArray) -> FloatArray:
        """Return the times of some packets, s since the origin."""
        return (self.packets.time_ns[rows] - self.origin_ns) / 1e9

    def by_sender(self) -> BoolArray:
        """Select the packets of the data's sender; return a mask."""
        return np.asarray(self.packets.half == self.half)

    def data(self, *kinds: Kind) -> BoolArray:
        """Select the packets with payload, or those of some kinds; return a mask."""
        return np.asarray(self.by_sender() & np.isin(self.tracked.kind, kinds or DATA_KINDS))

    def pure_acks(self, *kinds: Kind) -> BoolArray:
        """Select the ACKs for this direction, or some kinds of them; return a mask."""
        return np.asarray(~self.by_sender() & np.isin(self.tracked.kind, kinds or ACK_KINDS))

    def select_acks(self) -> BoolArray:
        """Select the opposite half's packets that acknowledge; return a mask."""
        rows = ~self.by_sender() & (self.tracked.ack_bytes >= 0)
        rows &= (self.tracked.kind != Kind.COPY) & (self.packets.flags & FLAG_RST == 0)
        return np.asarray(rows)

    def window_bytes(self, rows: BoolArray | IntArray) -> IntArray:
        """Return the receive window of packets, bytes; a SYN's is not scaled."""
        scaled = self.packets.flags[rows] & FLAG_SYN == 0
        return self.packets.window[rows] << np.where(scaled, self.window_shift or 0, 0)
