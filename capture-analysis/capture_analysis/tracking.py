"""What each packet means to its connection: new data or old, an ACK of what, after how long.

In C (clib/track.c), by ctypes.

Wireshark (4.0) differs on purpose or by heuristics: it has no RTT where that is 0, but one of
segments that were sent twice; what answers a needless retransmission is a duplicate ACK there and
an OLD_ACK here; what fills a hole is told into out-of-order and retransmission there, by the time
that passed, and is LATE_DATA here; a retransmission that goes on into new bytes is NEW_DATA here.
"""

import ctypes
import weakref
from dataclasses import dataclass, fields
from enum import IntEnum
from typing import Any

import numpy as np

from capture_analysis import clib
from capture_analysis.columns import BoolArray, FlowTable, IntArray, Packets


class Kind(IntEnum):
    """What a packet is, `Tracked.kind`; each is one.

    "Seen" and "before" mean in the capture, by its order. A half is what one end sends.
    """

    CONTROL = 0
    """SYN (also with payload, then new_bytes counts it), RST, or a FIN without payload."""
    NEW_DATA = 1
    """Payload of which at least a byte lies above everything seen before in this half."""
    RETRANSMISSION = 2
    """Payload of which every byte was seen before."""
    LATE_DATA = 3
    """Payload below the highest byte seen, of which a byte was not seen before: it fills a hole.
    Reordered, or sent again after a loss before this point of the path."""
    PROBE = 4
    """Keep-alive or window probe: at most a byte of payload, at the highest byte seen, and that is
    acknowledged (without payload: unless it is an ACK); or a single byte beyond what is
    acknowledged while the other end's window is closed (its new_bytes may be 1). A segment of one
    byte sent again although its ACK was seen looks the same."""
    ACK = 5
    """No payload, acknowledges what nothing before did: payload, or a SYN or FIN (acked_bytes is
    then 0). The first of a half is one, too."""
    DUPLICATE_ACK = 6
    """No payload, acknowledges what the highest before did, while something is outstanding;
    window open and unchanged, or with a SACK block (RFC 5681, 2; RFC 6675). If nothing was seen
    of the other half, something is held to be outstanding."""
    WINDOW_UPDATE = 7
    """No payload, acknowledges what the highest before did, another window, no SACK block."""
    OLD_ACK = 8
    """No payload and none of these: acknowledges less than one before (reordered), or nothing
    new with nothing outstanding or the window closed (answers a probe)."""
    COPY = 9
    """The same packet once more: captured twice, not sent twice. Of the last four packets of this
    half one has the same numbers, flags, payload length, window, time stamps, first SACK block
    and IP identification. A sender counts the identification on, so that within a second one
    that is not 0 is proof; without one (IPv6, some stacks) less than a millisecond must lie
    between, the tick of Linux's time stamps, and less than any retransmission timer.
    Duplicate ACKs without SACK, without identification and within a millisecond look the same
    and are taken for copies."""


TRACKED_TYPES: dict[str, np.dtype[Any]] = {
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

    Copies and RSTs change nothing that later packets are compared with; of a copy and a RST
    new_bytes and acked_bytes are 0, gap_ns and rtt_ns -1.

    Attributes:
        seq_bytes: sequence number without wrap-around, from the half's base (FlowTable): of a
            connection seen from its SYN the first byte of data is 1. Below 0 if it lies before
            the base (a capture that begins amid a connection).
        ack_bytes: the same for the acknowledgement number, from the other half's base; -1 if the
            packet has no ACK flag, nothing was seen before of the other half, or it lies before
            that half's base.
        gap_ns: time since the packet before it of this half that, as this one, has payload, or
            as this one has none (SYN, FIN, RST and copies left out); -1 for the first and those,
            and where the capture's time runs backward.
        rtt_ns: of a packet that acknowledges new data, SYN or FIN: time since the newest segment
            that it, and none before it, acknowledges in full was captured; -1 if there is none,
            and if anything that it newly acknowledges lies between the lowest and the highest
            byte that was sent again or came late since all such were acknowledged (Karn), or of
            which the time was forgotten.
        new_bytes: payload not seen before in this half.
        acked_bytes: payload of the other half acknowledged by nothing before, whether the capture
            has it or not; of the first acknowledgement, from the other half's base. What was
            acknowledged and never seen is taken back when a SYN acknowledges less: it was an
            answer of the connection before (RFC 5961's challenge ACK).
        in_flight_bytes: payload between the highest byte acknowledged and the highest seen, after
            this packet; of this packet's half if it has payload, else of the other. Until there
            is an acknowledgement, from the base. 0 if more is acknowledged than was seen (the
            capture lost it).
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

    def widened(self) -> "Tracked":
        """The same with int64 columns, in which differences and products do not wrap."""
        return Tracked(*(getattr(self, f.name).astype(np.int64) for f in fields(self)))


@dataclass
class Forgotten:
    """What a tracker let go, since the memory of a connection is bounded.

    Attributes:
        holes: of more than HOLES in a half, the lowest; what fills one later counts as
            a retransmission.
        segments: those without an RTT, as SEGMENTS before them were not acknowledged.
    """

    holes: int = 0
    segments: int = 0


HOLES = 64
SEGMENTS = 1 << 16
# Until the other end has acknowledged anything: it may be that the capture has one direction.
SEGMENTS_AT_FIRST = 64

# As enum ca_track_status in clib/track.h.
_NO_SUCH_FLOW, _NO_MEMORY = 1, 2

# As struct ca_tracked in clib/track.h: pointers and nothing else.
_Tracked = ctypes.c_void_p * len(TRACKED_TYPES)


class _Forgotten(ctypes.Structure):
    """As struct ca_forgotten in clib/track.h."""

    _fields_ = [("holes", ctypes.c_uint64), ("segments", ctypes.c_uint64)]


class Tracker:
    """Follows the connections of one capture, chunk by chunk.

    Nothing is shared between connections, and nothing depends on where chunks end.
    """

    def __init__(self) -> None:
        self._library = clib.load()
        self._tracker = self._library.ca_tracker_new()
        if not self._tracker:
            raise MemoryError
        weakref.finalize(self, self._library.ca_tracker_free, self._tracker)
        self._rows = _empty_rows(0)

    @property
    def forgotten(self) -> Forgotten:
        """What was let go so far."""
        at = self._library.ca_tracker_forgotten(self._tracker)
        forgotten = _Forgotten.from_address(at)
        return Forgotten(forgotten.holes, forgotten.segments)

    def track(self, packets: Packets, flows: FlowTable) -> Tracked:
        """Return columns for the next packets of the capture, in file order.

        The columns are overwritten by the next call.

        Args:
            packets: all packets of the connections that are of interest.
            flows: the connections so far, of which each packet's is one.

        Raises: ValueError if it is none.
        """
        columns, _kept = clib.Columns.of(packets)
        if len(self._rows) < len(packets):
            self._rows = _empty_rows(len(packets))
        status = self._library.ca_tracker_track(
            self._tracker,
            ctypes.byref(columns),
            len(packets),
            len(flows),
            _Tracked(*map(_address, vars(self._rows).values())),
        )
        if status == _NO_SUCH_FLOW:
            raise ValueError("a packet of a connection that is not in the table")
        if status == _NO_MEMORY:
            raise MemoryError
        return self._rows.where(slice(len(packets)))


def _empty_rows(rows: int) -> Tracked:
    return Tracked(*(np.empty(rows, dtype) for dtype in TRACKED_TYPES.values()))


def _address(column: IntArray) -> int:
    return int(column.ctypes.data)
