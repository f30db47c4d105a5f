"""Packets that a policer drops before a queue.

The metric counts packets that met a queue with a free place and still are not in the captures
behind it. It does not use the token bucket, by which theories predict it; a fidelity check compares
each drop with the bucket.
"""

import math

from capture_analysis.columns import BoolArray
from capture_analysis.definition import Definition

from twoway.contract.metrics import FidelityRow
from twoway.links.mtu import Mtu
from twoway.links.policer import Policer
from twoway.measure import checks
from twoway.measure.analysis import Analysis
from twoway.measure.metric import Scope, estimates
from twoway.measure.queue_view import QueueView
from twoway.measure.queues import limit_at
from twoway.measure.real_time import ClockError

POLICED = Definition(
    "policed",
    "1",
    "share of the packets offered to a queue that the policer before it drops",
    "RFC 2475",
    most=1,
)


@estimates(Scope.QUEUE, POLICED)
def policed_share(analysis: Analysis, view: QueueView) -> tuple[float]:
    """Return the share in the steady window; NaN without a policer, or before a managed queue."""
    if view.queue.is_managed or not analysis.run.element(view.queue, Policer):
        return (math.nan,)
    time_ns = view.passed.packets.time_ns
    has_place = view.all_packets.count_at(time_ns) < limit_at(view.queue, time_ns)
    steady = (time_ns >= analysis.run.steady_ns) & (time_ns < analysis.run.stop_ns)
    lost = view.passed.dropped & has_place
    if mtu := analysis.run.element(view.queue, Mtu):
        lost &= ~mtu.refuses(time_ns, view.passed.packets.frame_bytes)
    return (float(lost[steady].mean()) if steady.any() else math.nan,)


@checks.QueueCheck
def check(
    analysis: Analysis, direction: str, view: QueueView, error: ClockError | None
) -> list[FidelityRow]:
    """Compare the packets that a policer dropped with those that its token bucket refuses."""
    refused = None if error else _mark_refused(analysis, view)
    if refused is None:
        return []
    kernel = analysis.run.counted_drops(view.queue, "clsact")
    odd = int((refused & ~view.passed.dropped).sum()) + abs(int(refused.sum()) - kernel)
    what = f"{direction}: {kernel} drops before the queue that differ from the token bucket's"
    return [checks.row(what, odd, "0", odd == 0)]


def _mark_refused(analysis: Analysis, view: QueueView) -> BoolArray | None:
    """Mark the packets that a policer, or a black hole before it, refuses; None without one."""
    elements, packets = analysis.run.elements(view.queue), view.passed.packets
    if not elements.contains(Policer):
        return None
    came = packets.time_ns, packets.frame_bytes
    return elements.refuse(*came) & ~elements.refuse(*came, counted=False)
