"""A queue's router may change packets before its queue: filters, fragments, ends of tunnels.

No capture lies between a router's work and its queue. A packet on the link that no capture saw come
was made there. It counts in the queue from the start of its transmission: its wait is unknown. A
packet that came, did not leave, and is not among those that the kernel's queue dropped never
reached the queue. A tunnel alone keeps number and order of packets, which tells one from another.
"""

from dataclasses import replace

import numpy as np
from capture_analysis.columns import BoolArray, Packets
from capture_analysis.two_captures.matching import partners

from twoway.contract.network import Queue
from twoway.measure.queues import Passage, limit_at, occupancy


def made_by_router(queue: Queue, entering: Packets, leaving: Packets) -> Packets:
    """Select the packets that left and had not come, at the times at which they entered."""
    made = leaving.where(partners(leaving.key(), entering.key()) < 0)
    waited = 0 if queue.leaves_at_start else queue.service_ns(made.frame_bytes.astype(np.int64))
    return replace(made, time_ns=made.time_ns - waited)


def in_order(queue: Queue, entering: Packets, leaving: Packets) -> Passage | None:
    """Match packets by their order alone, as a tunnel's: a drop-tail queue keeps it.

    Packets that the tunnel makes larger than all that left were too large for it.

    Returns: the packets that fitted, with the sizes that they have on the link; None if more or
    fewer left than a queue of this limit takes, or one before it came.
    """
    if queue.is_managed or not len(entering):
        return None
    added = int(leaving.frame_bytes.min()) - int(entering.frame_bytes.min())
    entering = entering.where(entering.frame_bytes <= int(leaving.frame_bytes.max()) - added)
    taken, gone, left_ns = list[int](), 0, leaving.time_ns.tolist()
    limit = limit_at(queue, entering.time_ns)
    for row, time_ns in enumerate(entering.time_ns.tolist()):
        while gone < min(len(left_ns), len(taken)) and left_ns[gone] <= time_ns:
            gone += 1
        if len(taken) - gone < limit[row]:
            taken.append(row)
    if len(taken) < len(left_ns):
        return None
    rows = np.array(taken[: len(left_ns)], dtype=np.int64)
    frame_bytes = leaving.frame_bytes.astype(np.int64)
    if (leaving.time_ns - entering.time_ns[rows] < queue.service_ns(frame_bytes)).any():
        return None
    size, fate = entering.frame_bytes.astype(np.int64), np.full(len(entering), -1, dtype=np.int64)
    size[rows], fate[rows] = frame_bytes, leaving.time_ns
    return Passage(replace(entering, frame_bytes=size), fate, entering.payload_bytes > 0)


def mark_arrivals(
    queue: Queue, seen: Passage, refused: BoolArray, made: Packets, kernel_drops: int
) -> BoolArray:
    """Mark the packets that reached the queue or that an element of its link dropped before it.

    Args:
        queue: the queue.
        seen: the packets that came to the router.
        refused: shape (n,), those that an element drops.
        made: those that the router made: of a flow with fragments, it cut what an MTU refuses.
        kernel_drops: the kernel's count of drops inside the queue.
    """
    cut = refused & np.isin(seen.packets.flow, made.flow)
    doubtful = seen.dropped & (cut | ~refused)
    if not queue.is_managed:
        time_ns = seen.packets.time_ns
        doubtful &= occupancy(seen).count_at(time_ns) < limit_at(queue, time_ns)
    elif kernel_drops:
        doubtful &= cut
    if int((seen.dropped & ~refused).sum()) <= kernel_drops:
        doubtful &= cut
    return ~doubtful
