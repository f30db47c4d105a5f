"""One direction of one connection in memory: a half's data, and what comes back for them."""

from dataclasses import dataclass

import numpy as np

from capture_analysis.columns import FLAG_RST, FLAG_SYN, BoolArray, IntArray, Packets
from capture_analysis.pictures.figure import FloatArray
from capture_analysis.tracking import Kind, Tracked

DATA_KINDS = (Kind.NEW_DATA, Kind.RETRANSMISSION, Kind.LATE_DATA, Kind.PROBE)
ACK_KINDS = (Kind.ACK, Kind.DUPLICATE_ACK, Kind.WINDOW_UPDATE, Kind.OLD_ACK)


@dataclass(frozen=True)
class Direction:
    """What figures are drawn from.

    Attributes:
        name: both ends, the sender of the data first.
        half: the half that sends the data.
        origin_ns: time that figures call 0.
        packets: of both halves, int64, in order of capture.
        tracked: their tracked columns, int64.
        window_shift: by how many bits the window that the ACKs announce is scaled; None if the
            handshake was not seen.
        segment_bytes: payload of a full segment, 0 if unknown.
        data_service_ns: time that a full segment takes on its bottleneck, None if unknown.
        ack_service_ns: time that an ACK takes on its bottleneck, None if unknown.
        bound: of the compression factor, None if unknown.
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

    def seconds(self, rows: BoolArray | IntArray) -> FloatArray:
        """Times of some packets, s since the origin."""
        return (self.packets.time_ns[rows] - self.origin_ns) / 1e9

    def data(self, *kinds: Kind) -> BoolArray:
        """Mask of the packets with payload, or of those kinds."""
        mine = self.packets.half == self.half
        return np.asarray(mine & np.isin(self.tracked.kind, kinds or DATA_KINDS))

    def pure_acks(self, *kinds: Kind) -> BoolArray:
        """Mask of the packets without payload that come back, or of those kinds."""
        other = self.packets.half != self.half
        return np.asarray(other & np.isin(self.tracked.kind, kinds or ACK_KINDS))

    def acknowledging(self) -> BoolArray:
        """Mask of all that comes back with an acknowledgement, with payload or without."""
        rows = (self.packets.half != self.half) & (self.tracked.ack_bytes >= 0)
        rows &= (self.tracked.kind != Kind.COPY) & (self.packets.flags & FLAG_RST == 0)
        return np.asarray(rows)

    def window_bytes(self, rows: BoolArray | IntArray) -> IntArray:
        """What some packets that come back offer to take; a SYN's window is never scaled."""
        scaled = self.packets.flags[rows] & FLAG_SYN == 0
        return self.packets.window[rows] << np.where(scaled, self.window_shift or 0, 0)
