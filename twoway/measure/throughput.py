"""Goodput, efficiency and utilisation over a window."""

import numpy as np
from capture_analysis.columns import FLAG_RST, FLAG_SYN, IntArray, Packets
from capture_analysis.two_captures.queue_levels import transmission_starts
from numpy.typing import NDArray

from twoway.contract.network import Queue
from twoway.measure.queues import Passage, merge_times

FloatArray = NDArray[np.float64]


def new_payload_bytes(data: Packets, brought: IntArray, start_ns: int, stop_ns: int) -> int:
    """Count the payload that first arrived in a window; each byte counts once.

    Args:
        data: one connection's segments at its receiver.
        brought: their `new_payload`.
        start_ns: start of the window.
        stop_ns: end of the window, not included.
    """
    inside = (data.time_ns >= start_ns) & (data.time_ns < stop_ns)
    return int(brought[inside].sum())


def new_payload(data: Packets) -> IntArray:
    """Count the bytes of each segment that no earlier segment brought.

    Args:
        data: one connection's segments at its receiver, shape (n,), in time order, from its start.

    Returns: shape (n,), bytes.
    """
    first, end = _byte_ranges(data)
    if (first[1:] >= end[:-1]).all():  # no byte came twice
        return data.payload_bytes
    # All bytes between two neighbouring edges are in the same segments; the first of these brought
    # them.
    edges = merge_times(first, end)
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


def rate_bit(data: Packets, brought: IntArray, edges_ns: IntArray) -> FloatArray:
    """Compute the goodput in each of several intervals.

    Args:
        data: one connection's segments at its receiver, in time order.
        brought: their `new_payload`.
        edges_ns: shape (k+1,), the ends of the intervals, ascending.

    Returns: shape (k,), bit/s.
    """
    total = np.concatenate(([0], np.cumsum(brought)))
    arrived = total[np.searchsorted(data.time_ns, edges_ns)]
    return np.asarray(np.diff(arrived) * 8e9 / np.diff(edges_ns))


def carried_bit(
    data: Packets, brought: IntArray, transmission_ns: IntArray, edges_ns: IntArray
) -> FloatArray:
    """Compute the goodput in each of several intervals, as the link carries it.

    A segment's payload is spread over its transmission, as late as its arrival and the segments
    after it allow: an interval never has more than the link carries in it, however short it is.
    Segments that arrive after the last interval are left out.

    Args:
        data: one connection's segments at its receiver, in time order.
        brought: their `new_payload`.
        transmission_ns: shape (n,), their transmission times on the slowest link.
        edges_ns: shape (k+1,), the ends of the intervals, ascending.

    Returns: shape (k,), bit/s.
    """
    count = int(np.searchsorted(data.time_ns, edges_ns[-1]))
    if not count:
        return np.zeros(len(edges_ns) - 1)
    busy_ns = np.concatenate(([0], np.cumsum(transmission_ns[:count])))
    spare_ns = np.minimum.accumulate((data.time_ns[:count] - busy_ns[1:])[::-1])[::-1]
    total = np.concatenate(([0], np.cumsum(brought[:count])))
    times_ns = np.stack((spare_ns + busy_ns[:-1], spare_ns + busy_ns[1:]), axis=1).ravel()
    carried = np.interp(edges_ns, times_ns, np.stack((total[:-1], total[1:]), axis=1).ravel())
    return np.asarray(np.diff(carried) * 8e9 / np.diff(edges_ns))


def before_reset(arriving: Packets, answers: Packets) -> Packets:
    """Select the packets before the reset that closed the receiver.

    After the reset the receiver's host answers data with resets. With a stock kernel, a reset may
    overtake data in cake, which finds a packet's queue by a number that the sending socket gives
    its packets: a reset for a closed socket has no such number (decision 0022).

    Args:
        arriving: one connection's packets at its receiver.
        answers: packets of the other direction at the same place.
    """
    refused_ns = answers.time_ns[(answers.flags & FLAG_RST) > 0]
    resets_ns = arriving.time_ns[(arriving.flags & FLAG_RST) > 0]
    if not len(refused_ns) or not (resets_ns <= refused_ns[0]).any():
        return arriving
    return arriving.where(arriving.time_ns <= resets_ns[resets_ns <= refused_ns[0]].max())


def in_order_bytes(arriving: Packets) -> int:
    """Count the payload before the first hole.

    The receiver's application has no more than that.

    Args:
        arriving: one connection's packets at its receiver; without a SYN at their head the first
            byte that arrives counts as the stream's first.
    """
    seq = unwrap(arriving.seq)
    rows = np.flatnonzero(arriving.payload_bytes)
    if not len(rows):
        return 0
    rows = rows[np.argsort(seq[rows], kind="stable")]
    first, end = seq[rows], (seq + arriving.payload_bytes)[rows]
    start = 1 if arriving.flags[0] & FLAG_SYN else first[0]
    reached = np.concatenate(([start], np.maximum.accumulate(end)))
    holes = np.flatnonzero(first > reached[:-1])
    return int(reached[holes[0] if len(holes) else -1] - start)


def _byte_ranges(data: Packets) -> tuple[IntArray, IntArray]:
    """Compute first byte and end of each segment, without wrap-around."""
    first = unwrap(data.seq)
    return first, first + data.payload_bytes


def unwrap(seq: IntArray) -> IntArray:
    """Remove the wrap-around of sequence numbers; steps must stay below 2^31.

    Args:
        seq: shape (n,), 0..2^32-1, in order of capture.

    Returns: shape (n,), bytes after the first number; negative for earlier ones.
    """
    if not len(seq):
        return seq
    steps = (np.diff(seq) + (1 << 31)) % (1 << 32) - (1 << 31)
    return np.concatenate(([0], np.cumsum(steps)))


def full_payload_share(arriving: Packets, queue: Queue) -> float:
    """Divide a full segment's payload by its size on the link."""
    payload = int(arriving.payload_bytes.max(initial=0))
    if not payload:
        return float("nan")
    frame = int(arriving.frame_bytes[arriving.payload_bytes.argmax()])
    return payload / float(queue.link_bytes(frame))


def efficiency(goodput_bit: float, arriving: Packets, queue: Queue, rate_bit: float) -> float:
    """Divide a goodput by that of one-way data on a full link.

    Args:
        goodput_bit: the connection's payload rate, bit/s.
        arriving: its packets at the receiver, which give the segment size.
        queue: the bottleneck of its data.
        rate_bit: the mean rate of the bottleneck's link, bit/s.

    Returns: NaN for a link without a rate.
    """
    full_bit = rate_bit * full_payload_share(arriving, queue)
    return goodput_bit / full_bit if full_bit else float("nan")


def link_bytes(arriving: Packets, queue: Queue) -> int:
    """Add up packets' sizes on the link, headers and duplicates included."""
    return int(queue.link_bytes(arriving.frame_bytes).sum())


def utilisation(
    passed: Passage,
    start_ns: int,
    stop_ns: int,
    *,
    data_only: bool = False,
    begin_ns: IntArray | None = None,
) -> float:
    """Compute the share of a window in which a link transmits.

    Args:
        passed: the packets of its queue.
        start_ns: start of the window.
        stop_ns: its end.
        data_only: True to count data packets alone.
        begin_ns: shape (m,), the time at which each departure's transmission began; None: the
            arrival of the packet or the end of the transmission before it.
    """
    rows = passed.departures
    end = passed.left_ns[rows]
    begin = begin_ns
    if begin is None:
        begin = transmission_starts(passed.packets.time_ns[rows], end, 0)
    busy = np.maximum(np.minimum(end, stop_ns) - np.maximum(begin, start_ns), 0)
    counted = busy[passed.is_data[rows]] if data_only else busy
    return float(counted.sum() / (stop_ns - start_ns))
