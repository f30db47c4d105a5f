"""Losses on a link, behind its queue: on a radio, for example, or where a profile says `loss`.

A data packet was lost there if the capture behind its last queue has it and the capture at its sink
does not. The whole captures count.

    link_loss = packets lost / packets that left the queue

The number of packets decides how far the share may be from the profile's. With the share p and
bursts of b packets on average, the next packet's fate is correlated with this one's by l = 1 -
enter - leave (twoway/links/loss.py), and over n packets the share has the variance

    p (1 - p) / n * (1 + l) / (1 - l)

and the mean of k bursts' lengths, which are geometric, b (b - 1) / k.
"""

import math
from collections.abc import Iterator

import numpy as np
from capture_analysis.columns import BoolArray, IntArray, Packets
from capture_analysis.definition import Definition
from numpy.typing import NDArray

from twoway.contract.metrics import FidelityRow
from twoway.contract.network import CHANGE_NS, Queue
from twoway.links.loss import Loss
from twoway.links.proof import copies_hide_losses
from twoway.measure import checks
from twoway.measure.analysis import Analysis
from twoway.measure.connection_view import ConnectionView
from twoway.measure.metric import Scope, estimates
from twoway.measure.queue_view import QueueView
from twoway.measure.queues import mark_copies
from twoway.measure.real_time import ClockError
from twoway.measure.run_folder import WHEN, Run

# Shares of a schedule are kept in millionths of a percent.
_PER_SHARE = 1e8
# A sound run exceeds this with a probability of one in a thousand million.
_LEAST_CHANCE = 1e-9

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
    "link_loss minus the profile's share, in standard deviations for the number of packets",
    "Gilbert 1960",
)
LINK_LOSS_BURST_DEVIATION = Definition(
    "link_loss_burst_deviation",
    "1",
    "link_loss_burst minus the profile's, in standard deviations for the number of bursts",
    "Gilbert 1960",
)


@estimates(
    Scope.CONNECTION, LINK_LOSS, LINK_LOSS_BURST, LINK_LOSS_DEVIATION, LINK_LOSS_BURST_DEVIATION
)
def link_loss(analysis: Analysis, view: ConnectionView) -> tuple[float, float, float, float]:
    """Return the share lost, the mean length of a burst, and the deviations of both."""
    if not analysis.run.loses_on_links:
        return 0.0, math.nan, math.nan, math.nan
    travel = analysis.travel(view.connection)
    lost = travel.lost[(travel.sent.payload_bytes > 0) & ~travel.under_way]
    if not len(lost):
        return math.nan, math.nan, math.nan, math.nan
    bursts = int(lost[0]) + int((np.diff(lost.astype(np.int8)) == 1).sum())
    share, length = float(lost.mean()), float(lost.sum()) / bursts if bursts else math.nan
    elements = analysis.run.elements(analysis.queues[view.connection.directions[-1]].queue)
    loss = elements.find(Loss)
    if not loss or not loss.percent or copies_hide_losses(elements):
        return share, length, math.nan, math.nan
    return share, length, *deviations(loss, share, len(lost), length, bursts)


def deviations(
    said: Loss, share: float, packets: int, length: float, bursts: int
) -> tuple[float, float]:
    """Compare losses with the profile's, in standard deviations; NaN if the profile has none.

    Args:
        said: the profile's `loss`.
        share: the share of lost packets.
        packets: number of packets.
        length: the mean length of a burst.
        bursts: number of bursts.
    """
    p, burst = said.share, said.burst_packets
    if p == 1:  # nothing is left to chance
        return math.nan, math.nan
    correlated = 1 - 1 / burst - p / (1 - p) / burst if burst else 0
    variance = p * (1 - p) / packets * (1 + correlated) / (1 - correlated)
    least = said.mean_burst
    spread = math.sqrt(least * (least - 1) / bursts) if bursts else 0
    return (share - p) / math.sqrt(variance), (length - least) / spread if spread else math.nan


@checks.QueueCheck
def check(
    analysis: Analysis, direction: str, view: QueueView, error: ClockError | None
) -> list[FidelityRow]:
    """Compare the packets that a link has lost with the count or schedule of its profile."""
    del error
    loss = analysis.run.element(view.queue, Loss)
    if loss and loss.every:
        return [_check_of_count(analysis, direction, view.queue, loss)]
    if loss and loss.schedule and not copies_hide_losses(analysis.run.elements(view.queue)):
        return [_check_of_schedule(analysis, direction, view.queue, loss)]
    return []


def _check_of_count(analysis: Analysis, direction: str, queue: Queue, loss: Loss) -> FidelityRow:
    """Compare the packets that a link with a count has lost with those that it had to lose.

    The link counts packets in the order in which they leave the queue; clocks do not affect that.
    """
    sent = analysis.run.packets_leaving(queue)
    due, total, odd = loss.counted_out(len(sent)), 0, 0
    keys = sent.key()
    for mine, lost, known in _fates(analysis, queue):
        total += int(known.sum())
        odd += int((due[np.isin(keys, mine.key())] != lost)[known].sum())
    what = f"{direction}: packets of {total} whose loss contradicts the count"
    return checks.row(what, odd, "0", odd == 0)


def _check_of_schedule(analysis: Analysis, direction: str, queue: Queue, loss: Loss) -> FidelityRow:
    """Compare the number of packets lost with the scheduled shares when they left the queue.

    Of n packets with the probability p, k or more (or fewer) are lost with a probability of at most
    exp(-n D), where D is the divergence of k / n from p (Chernoff 1952). Packets right after a
    change, which need not be in force yet, are left out.
    """
    run = analysis.run
    shares, lost = [np.zeros(0)], [np.zeros(0, dtype=bool)]
    for mine, gone, known in _fates(analysis, queue):
        if len(mine):
            share = _in_force(loss, run, mine.time_ns)
            settled = share == _in_force(loss, run, mine.time_ns - CHANGE_NS)
            chosen = known & settled & (mine.time_ns < run.stop_ns)
            shares.append(share[chosen])
            lost.append(gone[chosen])
    share, gone = np.concatenate(shares), np.concatenate(lost)
    found = {float(p): gone[share == p] for p in np.unique(share)}
    chances = {p: math.exp(-len(of) * _divergence(float(of.mean()), p)) for p, of in found.items()}
    told = ", ".join(f"{len(of)} at {100 * p:g} %" for p, of in found.items())
    what = f"{direction}: lowest probability of the losses seen, of packets: {told}"
    least = min(chances.values(), default=1)
    return checks.row(what, least, f"at least {_LEAST_CHANCE:g}", least >= _LEAST_CHANCE)


def _in_force(loss: Loss, run: Run, time_ns: IntArray) -> NDArray[np.float64]:
    """Look up the shares of losses at some times; the first share holds before the start."""
    time_ns = np.maximum(time_ns, run.start_ns)
    return loss.table.value_at(run.start_ns, time_ns) / _PER_SHARE


def _divergence(found: float, due: float) -> float:
    """Compute the Kullback-Leibler divergence of a share from another, in nats."""
    pairs = ((found, due), (1 - found, 1 - due))
    return sum(math.inf if not q else p * math.log(p / q) for p, q in pairs if p)


def _fates(analysis: Analysis, queue: Queue) -> Iterator[tuple[Packets, BoolArray, BoolArray]]:
    """List the packets whose last queue this is, marks of those lost, and marks of those known.

    The fate of packets on their path when the captures ended is unknown, and so is that of packets
    that look alike.
    """
    for _, travel in analysis.follow_behind(queue):
        yield travel.sent, travel.lost, ~travel.under_way & ~mark_copies(travel.sent)


@checks.RunCheck
def check_run(analysis: Analysis) -> list[FidelityRow]:
    """Compare losses behind queues with the kernel's count of packets that it dropped.

    All packets between hosts count, whoever sent them. The kernel drops packets before their delay,
    so its count may include packets on their path at the end.
    """
    manifest = analysis.run.manifest
    hidden = (copies_hide_losses(analysis.run.elements(queue)) for queue in manifest.queues)
    if not analysis.run.loses_on_links or any(hidden):
        return []
    queues = {queue.interface for queue in manifest.queues}
    kernel = 0
    shaped = (n for n in manifest.nodes.routers if f"qdisc/{n}-after.json" in manifest.files)
    for node in shaped:
        for sign, when in zip((-1, 1), WHEN, strict=True):
            qdiscs = analysis.run.qdiscs(node, when)
            # A root has counted the drops of a qdisc inside it.
            counting = (q for q in qdiscs if not q.parent or q.kind == "clsact")
            kernel += sign * sum(q.drops for q in counting if q.dev not in queues)
    lost = under_way = 0
    for hop in analysis.travels.hops:
        travel = analysis.travels.follow_hop(hop)
        lost += int(travel.lost.sum())
        under_way += int(travel.under_way.sum())
    what = f"packets lost behind queues in the captures minus the kernel's {kernel}"
    bound = f"{-under_way}..0" if under_way else "0"
    return [checks.row(what, lost - kernel, bound, -under_way <= lost - kernel <= 0)]
