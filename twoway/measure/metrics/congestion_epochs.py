"""Drops, and the congestion epochs into which they cluster.

An epoch's drops follow each other within the longest round trip, with each queue full of its
largest frames (Zhang, Shenker, Clark 1991, section 2.1). Out of phase, one queue's epochs follow
the other's so closely that, taken together, they never end; those of one queue stay apart (section
3.2). `epoch_drops_half_gap` is `epoch_drops` with half the gap between epochs, and shows how much
the gap matters.
"""

import math

from capture_analysis.definition import Definition
from capture_analysis.metrics.loss import (
    ALTERNATING_VICTIMS,
    CONGESTION_EPOCHS,
    DROPS_PER_EPOCH,
    SINGLE_VICTIM_EPOCHS,
)

from twoway.measure.analysis import Analysis
from twoway.measure.connection_view import ConnectionView
from twoway.measure.metric import Scope, estimates
from twoway.measure.queue_view import QueueView

_ZHANG = "Zhang, Shenker, Clark 1991"
EPOCH_PERIOD = Definition(
    "epoch_period", "s", "mean time from the first drop of a congestion epoch to that of the next"
)
EPOCH_LOSSES = Definition(
    "epoch_losses",
    "packets",
    "ratio of a connection's lost data packets to the number of congestion epochs",
    _ZHANG,
)
DROPPED_DATA_SHARE = Definition(
    "dropped_data_share", "1", "share of data packets among all dropped packets", _ZHANG, most=1
)
DROPS_DATA = Definition("drops_data", "packets", "data packets that the queue dropped")
DROPS_ACK = Definition("drops_ack", "packets", "packets without payload that the queue dropped")
QUEUE_EPOCHS = Definition("queue_epochs", "1", "clusters of one queue's drops, data and ACKs")
EPOCH_DROPS = Definition("epoch_drops", "packets", "mean drops of the queue in one of its epochs")
EPOCH_DROPS_ACK = Definition(
    "epoch_drops_ack", "packets", "mean drops without payload in one of the queue's epochs"
)
EPOCH_DROPS_HALF_GAP = Definition(
    "epoch_drops_half_gap", "packets", "`epoch_drops` with half the gap between epochs"
)
QUEUE_EPOCH_PERIOD = Definition(
    "queue_epoch_period",
    "s",
    "mean time from the first drop of a queue's epoch to the first of its next epoch",
)


@estimates(
    Scope.RUN,
    CONGESTION_EPOCHS,
    DROPS_PER_EPOCH,
    SINGLE_VICTIM_EPOCHS,
    ALTERNATING_VICTIMS,
    EPOCH_PERIOD,
)
def congestion_epochs(analysis: Analysis) -> tuple[float, ...]:
    """Describe the epochs of the steady window."""
    epochs = analysis.congestion_epochs
    drops = epochs.drops
    return (
        len(drops),
        float(drops.mean()) if len(drops) else math.nan,
        epochs.single_victim_share(),
        epochs.alternating_share(),
        epochs.period_s(),
    )


@estimates(Scope.RUN, DROPPED_DATA_SHARE)
def dropped_data(analysis: Analysis) -> tuple[float, ...]:
    """Divide dropped data packets by all drops, over all queues in the steady window."""
    drops = [analysis.run.select_steady(analysis.drops(view)) for view in analysis.queues.values()]
    total, data = sum(map(len, drops)), sum(len(each.data()) for each in drops)
    return (data / total if total else math.nan,)


@estimates(Scope.QUEUE, DROPS_DATA, DROPS_ACK)
def drops(analysis: Analysis, view: QueueView) -> tuple[float, ...]:
    """Count drops from the start of the capture to the end of traffic."""
    found = analysis.drops(view)
    data = len(found.data())
    return data, len(found) - data


@estimates(
    Scope.QUEUE,
    QUEUE_EPOCHS,
    EPOCH_DROPS,
    EPOCH_DROPS_ACK,
    EPOCH_DROPS_HALF_GAP,
    QUEUE_EPOCH_PERIOD,
)
def queue_epochs(analysis: Analysis, view: QueueView) -> tuple[float, ...]:
    """Describe the queue's epochs in the steady window."""
    gap_ns = analysis.longest_round_trip_ns
    epochs = analysis.queue_epochs(view, gap_ns)
    count = len(epochs.drops)
    if not count:
        return 0, math.nan, math.nan, math.nan, math.nan
    steady = analysis.run.select_steady(analysis.drops(view))
    acks = len(steady) - len(steady.data())
    halved = analysis.queue_epochs(view, gap_ns // 2)
    return (
        count,
        float(epochs.drops.mean()),
        acks / count,
        float(halved.drops.mean()),
        epochs.period_s(),
    )


@estimates(Scope.CONNECTION, EPOCH_LOSSES)
def epoch_losses(analysis: Analysis, view: ConnectionView) -> tuple[float, ...]:
    """Divide the connection's lost data packets by all epochs of the run.

    Zhang et al. call the number a connection's acceleration.
    """
    epochs = len(analysis.congestion_epochs.drops)
    lost = len(analysis.run.select_steady(analysis.list_lost(view)))
    return (lost / epochs if epochs else math.nan,)
