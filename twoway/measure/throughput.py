"""Goodput, efficiency and utilisation over a window."""

import numpy as np
from capture_analysis.columns import FLAG_RST, IntArray, Packets
from capture_analysis.two_captures.queue_levels import transmission_starts
from numpy.typing import NDArray

from twoway.measure.queues import Passage
from twoway.measure.run_folder import Queue

FloatArray = NDArray[np.float64]


def new_payload_bytes(arriving: Packets, start_ns: int, stop_ns: int) -> int:
    """Payload that arrived in a window and had not arrived before; each byte counts once.

    Args:
        arriving: one connection's packets at its receiver, time order, from its start.
        start_ns: where the window starts.
        stop_ns: where it ends; what arrives then is not in it.
    """
    data = arriving.data()
    inside = (data.time_ns >= start_ns) & (data.time_ns < stop_ns)
    return int(new_payload(data)[inside].sum())


def new_payload(data: Packets) -> IntArray:
    """Payload that each segment brought first.

    Args:
        data: one connection's segments at its receiver, shape (n,), time order, from its start.

    Returns: shape (n,), bytes.
    """
    first, end = _byte_ranges(data)
    # Between neighbouring edges every byte arrived with the same segments; the first has it.
    edges = np.unique(np.concatenate((first, end)))
    begin, stop = np.searchsorted(edges, first), np.searchsorted(edges, end)
    rows = np.arange(len(data))
    bringer = np.full(len(edges), len(data))
    for row in np.flatnonzero(stop - begin > 1):
        np.minimum(bringer[begin[row] : stop[row]], row, out=bringer[begin[row] : stop[row]])
    whole = stop - begin == 1
    np.minimum.at(bringer, begin[whole], rows[whole])
    sizes = np.diff(edges, append=edges[-1:])
    brought = np.zeros(len(data) + 1, dtype=np.int64)
    np.add.at(brought, bringer, sizes)
    return brought[:-1]


def rate_bit(data: Packets, edges_ns: IntArray) -> FloatArray:
    """Goodput in each of several intervals.

    Args:
        data: one connection's segments at its receiver, time order, from its start.
        edges_ns: shape (k+1,), where intervals meet, ascending.

    Returns: shape (k,), bit/s.
    """
    total = np.concatenate(([0], np.cumsum(new_payload(data))))
    arrived = total[np.searchsorted(data.time_ns, edges_ns)]
    return np.asarray(np.diff(arrived) * 8e9 / np.diff(edges_ns))


def before_reset(arriving: Packets, answers: Packets) -> Packets:
    """What arrived until a reset ended the receiver, whose host answers data after it with resets.

    A reset may overtake data: cake finds a packet's queue by a number that sockets give their
    packets, and answers for a socket that is gone come from none.

    Args:
        arriving: one connection's packets at its receiver.
        answers: those of the other direction there.
    """
    refused_ns = answers.time_ns[(answers.flags & FLAG_RST) > 0]
    resets_ns = arriving.time_ns[(arriving.flags & FLAG_RST) > 0]
    if not len(refused_ns) or not (resets_ns <= refused_ns[0]).any():
        return arriving
    return arriving.where(arriving.time_ns <= resets_ns[resets_ns <= refused_ns[0]].max())


def in_order_bytes(arriving: Packets) -> int:
    """Payload up to the first hole: what the receiver could hand to its application.

    Args:
        arriving: one connection's packets at its receiver, from its start.
    """
    first, end = _byte_ranges(arriving.data())
    if not len(first):
        return 0
    order = np.argsort(first, kind="stable")
    first, reached = first[order], np.maximum.accumulate(end[order])
    holes = np.flatnonzero(first[1:] > reached[:-1])
    last = holes[0] if len(holes) else len(first) - 1
    return int(reached[last] - first[0])


def _byte_ranges(data: Packets) -> tuple[IntArray, IntArray]:
    """First byte and end of each segment, on a scale without wrap-around."""
    first = unwrap(data.seq)
    return first, first + data.payload_bytes


def unwrap(seq: IntArray) -> IntArray:
    """Sequence numbers without wrap-around, from the first; steps must stay below 2^31.

    Args:
        seq: shape (n,), 0..2^32-1, in order of capture.

    Returns: shape (n,), bytes after the first, negative for what was sent before it.
    """
    if not len(seq):
        return seq
    steps = (np.diff(seq) + (1 << 31)) % (1 << 32) - (1 << 31)
    return np.concatenate(([0], np.cumsum(steps)))


def full_payload_share(arriving: Packets, queue: Queue) -> float:
    """Payload over size on the link, of the connection's largest segments."""
    payload = int(arriving.payload_bytes.max(initial=0))
    if not payload:
        return float("nan")
    frame = int(arriving.frame_bytes[arriving.payload_bytes.argmax()])
    return payload / float(queue.link_bytes(frame))


def efficiency(goodput_bit: float, arriving: Packets, queue: Queue, rate_bit: float) -> float:
    """Goodput over that of a one-way connection which keeps the link full of its data.

    Args:
        goodput_bit: the connection's payload rate, bit/s.
        arriving: its packets at the receiver, for the segment size.
        queue: the bottleneck its data passes.
        rate_bit: the mean rate of its link, bit/s.
    """
    return goodput_bit / (rate_bit * full_payload_share(arriving, queue))


def link_bytes(arriving: Packets, queue: Queue) -> int:
    """Size on the link of packets, headers included; what arrives twice counts twice."""
    return int(queue.link_bytes(arriving.frame_bytes).sum())


def utilisation(passed: Passage, start_ns: int, stop_ns: int, *, data_only: bool = False) -> float:
    """Share of the window in which the link transmits, or transmits data.

    A transmission begins when its packet arrives or the one before it ends.
    """
    rows = passed.departures
    end = passed.left_ns[rows]
    begin = transmission_starts(passed.packets.time_ns[rows], end, 0)
    busy = np.maximum(np.minimum(end, stop_ns) - np.maximum(begin, start_ns), 0)
    counted = busy[passed.is_data[rows]] if data_only else busy
    return float(counted.sum() / (stop_ns - start_ns))
