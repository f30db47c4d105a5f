"""Segments that a receiver rejects because their time stamp is older than one before (PAWS).

A segment that another one overtook has the older time stamp, and Linux drops it (RFC 7323, section
5.3; tcp_paws_check of the kernel, which allows one tick):

    rejected if TS.Recent - TSval > 1
    TS.Recent := TSval of a segment that is not rejected, is not older than TS.Recent, begins at or
                 before the last ACK that was sent, and does not end before it
"""

import numpy as np
from capture_analysis.columns import FLAG_SYN, BoolArray, Packets

# Counters of /proc/net/netstat of segments that arrived and were dropped, and what they mean.
REASONS = {
    "PAWSEstab": "their time stamp was older than one before",
    "PAWSActive": "their time stamp was older than one before, in the handshake",
    "TCPRcvQDrop": "the receive queue had no room",
    "TCPZeroWindowDrop": "they came to a shut window",
    "TCPOFODrop": "the queue of segments out of order had no room",
    "RcvPruned": "the receive queue was pruned",
    "OfoPruned": "the queue of segments out of order was pruned",
    "TCPBacklogDrop": "the socket's backlog was full",
    "TCPReqQFullDrop": "the queue of half-open connections was full",
    "ListenOverflows": "the queue of accepted connections was full",
}
# The kernel's TCP_PAWS_WINDOW, ticks.
_WINDOW = 1
_HALF = 1 << 31


def rejected_as_old(arriving: Packets, sent: Packets) -> BoolArray:
    """Mark the segments that PAWS rejects at a receiver.

    Args:
        arriving: one connection's packets at the receiver, in time order, with all columns.
        sent: what the receiver sent in this connection, likewise.

    Returns: shape (n,), one mark for each packet of `arriving`.
    """
    found = np.zeros(len(arriving), dtype=np.bool_)
    stamps = arriving.ts_value.tolist()
    if not any(stamps):
        return found
    acked_ns, acked = sent.time_ns.tolist(), sent.ack.tolist()
    recent, last_ack, answers = stamps[0], None, 0
    columns = (arriving.time_ns, arriving.seq, arriving.payload_bytes, arriving.flags)
    rows = zip(*(column.tolist() for column in columns), stamps, strict=True)
    for row, (now_ns, seq, size, flags, stamp) in enumerate(rows):
        while answers < len(acked) and acked_ns[answers] < now_ns:
            last_ack = acked[answers]
            answers += 1
        ahead = (stamp - recent + _HALF) % (1 << 32) - _HALF
        if flags & FLAG_SYN or last_ack is None:
            recent = stamp
        elif ahead < -_WINDOW:
            found[row] = size > 0
        elif ahead >= 0 and 0 <= (last_ack - seq + _HALF) % (1 << 32) - _HALF <= size:
            recent = stamp
    return found
