"""Classify packets: new data or old, bytes acknowledged, RTT.

In C (clib/track.c), by ctypes.

Wireshark (4.0) differs on purpose or by heuristics. It has no RTT of 0, and gives RTTs to segments
that were sent twice. It calls the answer to a needless retransmission a duplicate ACK; here it is
an OLD_ACK. It calls data that fills a hole out-of-order or a retransmission, depending on the time;
here it is LATE_DATA. A retransmission that continues into new bytes is NEW_DATA here.
"""

import ctypes
import weakref
from dataclasses import dataclass, fields
from enum import IntEnum
from typing import Any

import numpy as np

from capture_analysis import clib
from capture_analysis.columns import BoolArray, IntArray, Packets
from capture_analysis.flow_table import FlowTable


class Kind(IntEnum):
    """The kind of a packet (`Tracked.kind`); every packet has exactly one.

    "Seen" and "before" refer to the capture, in file order. A half is the packets that one end
    sends.
    """

    CONTROL = 0
    """SYN (also with payload, then new_bytes counts it), RST, or a FIN without payload.

    A second SYN with another initial number has no effect, unless it is the first to be
    acknowledged: its half then begins again, and counts from there."""
    NEW_DATA = 1
    """Payload with at least one byte above everything seen before in this half."""
    RETRANSMISSION = 2
    """Payload whose bytes were all seen before."""
    LATE_DATA = 3
    """Payload below the highest byte seen, with at least one byte not seen before: it fills a hole.

    It was reordered, or sent again after a loss before the tap."""
    PROBE = 4
    """Keep-alive or window probe.

    Either at most a byte of payload at the highest byte seen, which is acknowledged already
    (without payload: unless it is an ACK); or a single byte beyond the acknowledged ones while the
    other end's window is closed (its new_bytes may be 1). A segment of one byte that is sent again
    although its ACK was seen looks the same."""
    ACK = 5
    """No payload, acknowledges something for the first time: payload, or a SYN or FIN (acked_bytes
    is then 0). The first ACK of a half is one, too."""
    DUPLICATE_ACK = 6
    """No payload, repeats the highest acknowledgement number while data is outstanding; window open
    and unchanged, or with a SACK block (RFC 5681, 2; RFC 6675). If the other half was never
    seen, its data counts as outstanding."""
    WINDOW_UPDATE = 7
    """No payload, repeats the highest acknowledgement number, with another window and no SACK
    block."""
    OLD_ACK = 8
    """Any other packet without payload: it acknowledges less than an earlier one (reordered), or
    nothing new while nothing is outstanding or the window is closed (answer to a probe)."""
    COPY = 9
    """The same packet once more: captured twice, not sent twice.

    One of the last four packets of this half, or once there was a copy of the last 64, and of up to
    1024 if copies come that late, has the same numbers, flags, payload length, window,
    time stamps, first SACK block and IP identification. Senders increment the identification, so a
    value other than 0 that returns within 0.2 s, the shortest retransmission timer in use (RFC 6298
    asks for 1 s, Linux takes 0.2), is proof; later, a sender that keeps it has sent again. Without
    identification (IPv6, some stacks) less than a millisecond must lie between the two: the tick of
    Linux's time stamps, and less than any retransmission timer. Duplicate ACKs without SACK,
    without identification and within a millisecond look the same and count as copies."""


class Repair(IntEnum):
    """The reason for a RETRANSMISSION (`Tracked.repair`), as its sender's tap shows it.

    The first reason that holds counts; clib/repair.c has the state behind it.
    """

    NONE = 0
    """The packet is no retransmission."""
    SPURIOUS = 1
    """All of its payload had been acknowledged before."""
    TIMEOUT = 2
    """The packet begins a repair after 0.2 s without data or pure ACKs of its direction, or is part
    of one.
    """
    FAST = 3
    """The packet begins a repair after a duplicate ACK or a SACK block, with no new acknowledgement
    since, or is part of one."""
    OTHER = 4
    """The packet begins a repair otherwise, or is part of one: a tail loss probe, or ACKs that the
    capture lacks."""


TRACKED_TYPES: dict[str, np.dtype[Any]] = {
    "seq_bytes": np.dtype("<i8"),
    "ack_bytes": np.dtype("<i8"),
    "gap_ns": np.dtype("<i8"),
    "rtt_ns": np.dtype("<i8"),
    "new_bytes": np.dtype("<u4"),
    "acked_bytes": np.dtype("<u4"),
    "in_flight_bytes": np.dtype("<u4"),
    "unseen_bytes": np.dtype("<u4"),
    "kind": np.dtype("u1"),
    "repair": np.dtype("u1"),
}


@dataclass(frozen=True)
class Tracked:
    """Columns besides those of `Packets`, shape (n,), of TRACKED_TYPES.

    See decision 0033.

    Copies and RSTs do not change the state that later packets are compared with; new_bytes and
    acked_bytes of a copy and of a RST are 0, gap_ns and rtt_ns -1.

    Attributes:
        seq_bytes: sequence number without wrap-around, from the half's base (FlowTable): in a
            connection seen from its SYN the first byte of data is 1. Negative before the base (a
            capture that begins in the middle of a connection).
        ack_bytes: acknowledgement number without wrap-around, from the other half's base; -1 if the
            packet has no ACK flag, if the other half was not seen before, or if the number lies
            before that half's base.
        gap_ns: for a packet with payload, time since the half's previous packet with payload; for
            one without, since its previous packet without. SYN, FIN, RST and copies are left out:
            -1 for these, for the first packet, and if the capture's time runs backward.
        rtt_ns: for a packet that acknowledges new data, SYN or FIN: time since the capture of the
            newest segment that this packet is the first to acknowledge in full. -1 if there is no
            such segment or its time was discarded. By Karn's rule it is also -1 if a newly
            acknowledged byte lies between the lowest and the highest byte that was sent again or
            came late since all earlier such bytes were acknowledged.
        new_bytes: payload not seen before in this half.
        acked_bytes: payload of the other half acknowledged for the first time, even if it is not in
            the capture; in the first acknowledgement, from the other half's base. Bytes that were
            acknowledged but never seen are subtracted again when a SYN acknowledges less: their ACK
            belonged to the connection before (RFC 5961's challenge ACK).
        in_flight_bytes: payload between the highest byte acknowledged and the highest seen, after
            this packet; of this packet's half if it has payload, else of the other. Before the
            first acknowledgement it counts from the base. 0 if more is acknowledged than was seen
            (the capture lost it).
        unseen_bytes: the part of acked_bytes that the capture lacks up to this packet: it missed
            the packets, or has them later. 0 in an answer to a SYN without a SYN of its own, which
            belongs to the connection before.
        kind: a value of Kind.
        repair: a value of Repair.
    """

    seq_bytes: IntArray
    ack_bytes: IntArray
    gap_ns: IntArray
    rtt_ns: IntArray
    new_bytes: IntArray
    acked_bytes: IntArray
    in_flight_bytes: IntArray
    unseen_bytes: IntArray
    kind: IntArray
    repair: IntArray

    def __len__(self) -> int:
        return len(self.kind)

    def where(self, rows: BoolArray | IntArray | slice) -> "Tracked":
        """Select rows by a mask, by row numbers or by a slice."""
        return Tracked(*(getattr(self, f.name)[rows] for f in fields(self)))

    def widen(self) -> "Tracked":
        """Convert columns to int64, so that differences do not wrap."""
        return Tracked(*(getattr(self, f.name).astype(np.int64) for f in fields(self)))


@dataclass
class Forgotten:
    """Counts of records discarded to bound a connection's memory.

    Attributes:
        holes: the lowest holes of a half that had more than HOLES; data that fill one later count
            as a retransmission.
        segments: segments without an RTT, because SEGMENTS earlier ones were not acknowledged.
    """

    holes: int = 0
    segments: int = 0


HOLES = 64
SEGMENTS = 1 << 16
# The limit until the other end acknowledges anything: the capture may have only one direction.
SEGMENTS_AT_FIRST = 64

# Values of enum ca_track_status in clib/track.h.
_NO_SUCH_FLOW, _NO_MEMORY = 1, 2

# Laid out as struct ca_tracked in clib/track.h: pointers and nothing else.
_Tracked = ctypes.c_void_p * len(TRACKED_TYPES)


class _Forgotten(ctypes.Structure):
    """Laid out as struct ca_forgotten in clib/track.h."""

    _fields_ = [("holes", ctypes.c_uint64), ("segments", ctypes.c_uint64)]


class Tracker:
    """Follow the connections of one capture, chunk by chunk.

    Connections share no state, and the result does not depend on chunk ends.
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
        """Counts of records discarded so far."""
        at = self._library.ca_tracker_forgotten(self._tracker)
        forgotten = _Forgotten.from_address(at)
        return Forgotten(forgotten.holes, forgotten.segments)

    def track(self, packets: Packets, flows: FlowTable) -> Tracked:
        """Return columns for the capture's next packets, in file order.

        The columns are overwritten by the next call.

        Args:
            packets: the next packets, with all packets of the connections of interest.
            flows: the connections so far, with that of each packet.

        Raises: ValueError if the connection of a packet is not in `flows`.
        """
        columns, _kept = clib.Columns.from_packets(packets)
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
