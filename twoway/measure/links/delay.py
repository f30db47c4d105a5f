"""A delay that changes: each packet must travel for the time that the table gives."""

import numpy as np

from twoway.contract.metrics import FidelityRow
from twoway.contract.network import START_NS
from twoway.links.delay import ChangingDelay
from twoway.links.impairments import Impairments
from twoway.measure import checks
from twoway.measure.analysis import Analysis
from twoway.measure.lanes import Lanes, numbers_of
from twoway.measure.queue_view import QueueView
from twoway.measure.queues import mark_copies
from twoway.measure.real_time import ClockError


@checks.QueueCheck
def check(
    analysis: Analysis, direction: str, view: QueueView, error: ClockError | None
) -> list[FidelityRow]:
    """Compare the times that packets travel behind a queue with a table of delays.

    A packet that is lost on the way holds up none. Jitter comes before the table, so that no check
    can tell one from the other; copies look alike.
    """
    del error
    run = analysis.run
    changing = run.element(view.queue, ChangingDelay)
    impairments = run.element(view.queue, Impairments)
    if not changing or (impairments and impairments.jitter_ns):
        return []
    sent = run.packets_leaving(view.queue)
    lanes, came_ns = Lanes(numbers_of(sent)), np.full(len(sent), -1, dtype=np.int64)
    lost = np.zeros(len(sent), dtype=np.bool_)
    for hop, travel in analysis.follow_behind(view.queue):
        mine = lanes.rows(*analysis.travels.hops[hop])
        came_ns[mine], lost[mine] = travel.came_ns, travel.lost
    if impairments and impairments.duplicate_percent:
        came_ns[mark_copies(sent)] = -1
    stays = np.flatnonzero(~lost)
    due_ns = changing.table.leaves(
        START_NS, sent.time_ns[stays], sent.frame_bytes[stays].astype(np.int64)
    )
    found = (came_ns[stays] - due_ns)[came_ns[stays] >= 0]
    worst = int(np.abs(found).max(initial=0))
    what = f"{direction}: worst error of the delays of {len(found)} packets, ns"
    return [checks.row(what, worst, "0", worst == 0)]
