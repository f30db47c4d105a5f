"""A delay that changes: each packet must travel for the time that the table gives."""

import numpy as np

from twoway.contract.metrics import FidelityRow
from twoway.contract.network import START_NS
from twoway.links.delay import ChangingDelay
from twoway.measure import checks
from twoway.measure.analysis import Analysis
from twoway.measure.lanes import Lanes, lanes_of
from twoway.measure.link_check import QueueCheck
from twoway.measure.queue_view import QueueView
from twoway.measure.real_time import ClockError


@QueueCheck
def check(
    analysis: Analysis, direction: str, view: QueueView, error: ClockError | None
) -> list[FidelityRow]:
    """Compare the times that packets travel behind a queue with a table of delays."""
    del error
    run = analysis.run
    changing = run.element(view.queue, ChangingDelay)
    if not changing:
        return []
    sent = run.leaving(view.queue)
    due_ns = changing.table.leaves(START_NS, sent.time_ns, sent.frame_bytes.astype(np.int64))
    lanes = Lanes(lanes_of(sent))
    off = []
    for hop, travel in analysis.behind(view.queue):
        mine = lanes.rows(*analysis.travels.hops[hop])
        off.append((travel.came_ns - due_ns[mine])[travel.came_ns >= 0])
    found = np.concatenate(off) if off else np.zeros(0, dtype=np.int64)
    worst = int(np.abs(found).max(initial=0))
    what = f"{direction}: worst error of the delays of {len(found)} packets, ns"
    return [checks.row(what, worst, "0", worst == 0)]
