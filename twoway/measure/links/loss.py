"""Losses on a link, behind its queue: on a radio, for example, or where a profile says `loss`.

A data packet was lost there if the capture behind its last queue has it and that at its sink does
not; those of the whole capture count.

    link_loss = packets lost / packets that left the queue

How far that may be from what the profile says depends on how many packets there were. With the
share p and bursts of b packets on average the next packet's fate is correlated with this one's by
l = 1 - enter - leave (twoway/contract/links/loss.py), and of n packets the share has the variance

    p (1 - p) / n * (1 + l) / (1 - l)

and the mean of k bursts' lengths, which are geometric, b (b - 1) / k.
"""

import math

import numpy as np
from capture_analysis.definition import Definition

from twoway.contract.links.loss import Loss
from twoway.contract.metrics import FidelityRow
from twoway.measure import checks
from twoway.measure.analysis import Analysis, ConnectionView
from twoway.measure.metric import Scope, estimates

LINK_LOSS = Definition(
    "link_loss",
    "1",
    "share of a connection's data packets that the link behind its queue loses",
    "Gilbert 1960",
    most=1,
)
LINK_LOSS_BURST = Definition(
    "link_loss_burst",
    "packets",
    "mean number of a connection's data packets that the link loses one after the other",
    "Gilbert 1960",
    least=1,
)
LINK_LOSS_DEVIATION = Definition(
    "link_loss_deviation",
    "1",
    "how many standard deviations of so many packets link_loss is above the profile's share",
    "Gilbert 1960",
)
LINK_LOSS_BURST_DEVIATION = Definition(
    "link_loss_burst_deviation",
    "1",
    "how many standard deviations of so many bursts link_loss_burst is above the profile's",
    "Gilbert 1960",
)


@estimates(
    Scope.CONNECTION, LINK_LOSS, LINK_LOSS_BURST, LINK_LOSS_DEVIATION, LINK_LOSS_BURST_DEVIATION
)
def link_loss(analysis: Analysis, view: ConnectionView) -> tuple[float, float, float, float]:
    """Return the share lost, the mean length of a burst, and both ones' deviations."""
    if not analysis.run.loses_on_links:
        return 0.0, math.nan, math.nan, math.nan
    travel = analysis.travel(view.connection)
    lost = travel.lost[(travel.sent.payload_bytes > 0) & ~travel.under_way]
    if not len(lost):
        return math.nan, math.nan, math.nan, math.nan
    bursts = int(lost[0]) + int((np.diff(lost.astype(np.int8)) == 1).sum())
    share, length = float(lost.mean()), float(lost.sum()) / bursts if bursts else math.nan
    loss = analysis.run.element(travel.queue, Loss)
    if not loss:
        return share, length, math.nan, math.nan
    return share, length, *deviations(loss, share, len(lost), length, bursts)


def deviations(
    said: Loss, share: float, packets: int, length: float, bursts: int
) -> tuple[float, float]:
    """Compare with what the profile says, in standard deviations; NaN if there is none.

    Args:
        said: the profile's `loss`.
        share: the share of packets that were lost.
        packets: how many there were.
        length: the mean length of a burst.
        bursts: how many there were.
    """
    p, burst = said.share, said.burst_packets
    correlated = 1 - 1 / burst - p / (1 - p) / burst if burst else 0
    variance = p * (1 - p) / packets * (1 + correlated) / (1 - correlated)
    least = said.mean_burst
    spread = math.sqrt(least * (least - 1) / bursts) if bursts else 0
    return (share - p) / math.sqrt(variance), (length - least) / spread if spread else math.nan


def check_run(analysis: Analysis) -> list[FidelityRow]:
    """Compare losses behind queues with the kernel's count of packets that it took away.

    It takes them when they set out, so that what was under way at the end may be among its count.
    """
    if not analysis.run.loses_on_links:
        return []
    queues = {queue.interface for queue in analysis.run.manifest.queues}
    kernel = 0
    for node in analysis.run.manifest.nodes.routers:
        for sign, when in ((-1, "before"), (1, "after")):
            qdiscs = analysis.run.document(f"qdisc/{node}-{when}.json")
            kernel += sign * sum(q["drops"] for q in qdiscs if q["dev"] not in queues)
    travels = [
        analysis.travel(view.connection, forward=forward)
        for view in analysis.connections.values()
        for forward in (True, False)
    ]
    lost = sum(int(each.lost.sum()) for each in travels)
    under_way = sum(int(each.under_way.sum()) for each in travels)
    what = f"packets lost behind queues in the captures less the kernel's {kernel}"
    bound = f"{-under_way}..0" if under_way else "0"
    return [checks.row(what, lost - kernel, bound, -under_way <= lost - kernel <= 0)]
