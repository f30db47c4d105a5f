"""Goodput, efficiency and utilisation over a window."""

import numpy as np

from capture_analysis.queues import Passage
from capture_analysis.reader import IntArray, Packets
from capture_analysis.run_folder import Queue


def new_payload_bytes(arriving: Packets, start_ns: int, stop_ns: int) -> int:
    """Payload that arrived in a window and had not arrived before; retransmissions count once.

    Args:
        arriving: one connection's packets at its receiver, time order, from its start.
        start_ns: where the window starts.
        stop_ns: where it ends; what arrives then is not in it.
    """
    data = arriving.where(arriving.payload_bytes > 0)
    if not len(data):
        return 0
    start = unwrap(data.seq)
    end = start + data.payload_bytes
    # Cut at every boundary of a segment: each piece arrived whole, perhaps more than once.
    edges = np.unique(np.concatenate((start, end)))
    first, last = np.searchsorted(edges, start), np.searchsorted(edges, end)
    arrived_ns = np.full(len(edges) - 1, np.iinfo(np.int64).max)
    for_each = last - first
    segment = np.repeat(np.arange(len(data)), for_each)
    piece = np.arange(len(segment)) - np.repeat(np.cumsum(for_each) - last, for_each)
    np.minimum.at(arrived_ns, piece, data.time_ns[segment])
    inside = (arrived_ns >= start_ns) & (arrived_ns < stop_ns)
    return int(np.diff(edges)[inside].sum())


def unwrap(seq: IntArray) -> IntArray:
    """Sequence numbers without wrap-around, from the first; steps must stay below 2^31.

    Args:
        seq: shape (n,), 0..2^32-1, in order of capture.

    Returns: shape (n,), bytes after the first, negative for what was sent before it.
    """
    steps = np.diff(seq, prepend=seq[:1])
    steps = (steps + (1 << 31)) % (1 << 32) - (1 << 31)
    return np.cumsum(steps)


def full_payload_share(arriving: Packets, queue: Queue) -> float:
    """Payload over size on the link, of the connection's largest segments."""
    payload = int(arriving.payload_bytes.max(initial=0))
    if not payload:
        return float("nan")
    frame = int(arriving.frame_bytes[arriving.payload_bytes.argmax()])
    return payload / float(queue.link_bytes(frame))


def efficiency(goodput_bit: float, arriving: Packets, queue: Queue) -> float:
    """Goodput over that of a one-way connection which keeps the link full of its data.

    Args:
        goodput_bit: the connection's payload rate, bit/s.
        arriving: its packets at the receiver, for the segment size.
        queue: the bottleneck its data passes.
    """
    return goodput_bit / (queue.rate_bit * full_payload_share(arriving, queue))


def utilisation(queue: Queue, passed: Passage, start_ns: int, stop_ns: int) -> float:
    """Share of the window in which the link transmits, acknowledgements included."""
    rows = passed.departures
    end = passed.left_ns[rows]
    begin = end - queue.service_ns(passed.packets.frame_bytes[rows])
    busy = np.minimum(end, stop_ns) - np.maximum(begin, start_ns)
    return float(np.maximum(busy, 0).sum() / (stop_ns - start_ns))
