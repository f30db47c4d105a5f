"""A limit that changes: a drop-tail queue drops what finds it full, and nothing else."""

import numpy as np

from twoway.contract.metrics import FidelityRow
from twoway.contract.network import CHANGE_NS
from twoway.measure import checks
from twoway.measure.analysis import Analysis
from twoway.measure.queue_view import QueueView
from twoway.measure.queues import limit_at
from twoway.measure.real_time import ClockError


@checks.QueueCheck
def check(
    analysis: Analysis, direction: str, view: QueueView, error: ClockError | None
) -> list[FidelityRow]:
    """Compare the fate of each packet with the limit in force, unless that has just changed.

    Of packets in the same ns the order is unknown: a packet dropped found the queue full before
    them or after them, and one taken fits after them.
    """
    del error
    queue, packets = view.queue, view.passed.packets
    if not queue.limits or queue.is_managed:
        return []
    time_ns, dropped = packets.time_ns, view.passed.dropped
    refused = analysis.run.elements(queue).refuse(time_ns, packets.frame_bytes)
    limit = limit_at(queue, time_ns)
    settled = ~refused & (limit == limit_at(queue, time_ns - CHANGE_NS))
    after = view.all_packets.count_at(time_ns)
    full = np.maximum(after, view.all_packets.count_at(time_ns - 1)) >= limit
    odd = int((settled & np.where(dropped, ~full, after > limit)).sum())
    what = f"{direction}: packets of {int(settled.sum())} whose fate contradicts the queue's limit"
    return [checks.row(what, odd, "0", odd == 0)]
