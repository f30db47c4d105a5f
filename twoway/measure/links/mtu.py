"""Packets that are larger than a link's own MTU."""

from twoway.contract.metrics import FidelityRow
from twoway.links.mtu import Mtu
from twoway.measure import checks
from twoway.measure.analysis import Analysis
from twoway.measure.queue_view import QueueView
from twoway.measure.real_time import ClockError


@checks.QueueCheck
def check(
    analysis: Analysis,
    direction: str,
    view: QueueView,
    error: ClockError | None,  # noqa: ARG001 - as other checks
) -> list[FidelityRow]:
    """Check that no packet larger than the MTU left the queue."""
    mtu, packets = analysis.run.element(view.queue, Mtu), view.passed.packets
    if not mtu:
        return []
    large = mtu.refuses(packets.time_ns, packets.frame_bytes)
    left = int((large & ~view.passed.dropped).sum())
    what = f"{direction}: of {int(large.sum())} packets above the MTU, those on the link"
    return [checks.row(what, left, "0", left == 0)]
