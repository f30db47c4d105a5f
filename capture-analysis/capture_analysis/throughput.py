"""Goodput, efficiency and utilisation over a window."""

import numpy as np

from capture_analysis.queues import Passage
from capture_analysis.reader import Packets
from capture_analysis.run_folder import Queue


def new_payload_bytes(arriving: Packets, start_ns: int, stop_ns: int) -> int:
    """Payload that arrived in a window and had not arrived before; retransmissions count once.

    Args:
        arriving: one connection's packets at its receiver, time order, from its start.
        start_ns, stop_ns: the window.
    """
    data = arriving.where(arriving.payload_bytes > 0)
    if not len(data):
        return 0
    end = unwrap(data.seq) + data.payload_bytes
    highest = np.maximum.accumulate(end)
    before = np.searchsorted(data.time_ns, [start_ns, stop_ns], side="left")
    first_byte = int(end[0] - data.payload_bytes[0])
    reached = [int(highest[n - 1]) if n else first_byte for n in before]
    return reached[1] - reached[0]


def unwrap(seq: np.ndarray[tuple[int], np.dtype[np.int64]]) -> np.ndarray[
    tuple[int], np.dtype[np.int64]
]:
    """Sequence numbers without wrap-around, from the first; steps must stay below 2^31."""
    steps = np.diff(seq)
    steps = (steps + (1 << 31)) % (1 << 32) - (1 << 31)
    return np.concatenate(([0], np.cumsum(steps)))


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
