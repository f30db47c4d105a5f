"""ACKs of a connection: their number, spacing, bunches and compression.

After Zhang, Shenker, Clark (1991) and Paxson (1997), section on ACK compression.
"""

import math

import numpy as np
from capture_analysis import ack_compression
from capture_analysis.definition import Definition
from capture_analysis.metrics.ack_bunches import ACK_BUNCH_MAX, ACK_BUNCH_MEAN
from capture_analysis.metrics.ack_spacing import ACK_SPACING_RATIO, ACKS_COMPRESSED
from capture_analysis.metrics.acks import ACK_TO_DATA
from capture_analysis.metrics.compression_factor import COMPRESSION_FACTOR, COMPRESSION_FACTOR_BOUND
from capture_analysis.metrics.loss import ACKS_LOST

from twoway.measure.analysis import Analysis
from twoway.measure.connection_view import ConnectionView
from twoway.measure.metric import HostError, Scope, estimates
from twoway.measure.queue_view import QueueView

ACK_BUNCH_MAX_SENT = Definition(
    "ack_bunch_max_sent",
    "acks",
    "size of the largest bunch of ACKs at the receiver, before any queue",
)
QUEUE_ACK_BUNCH_MAX = Definition(
    "queue_ack_bunch_max",
    "acks",
    "size of the largest bunch of ACKs that leaves the queue, over all connections",
)


@estimates(Scope.QUEUE, QUEUE_ACK_BUNCH_MAX)
def bunches_of_queue(analysis: Analysis, view: QueueView) -> tuple[float, ...]:
    """Return the largest bunch that leaves in the steady window."""
    run, passed = analysis.run, view.passed
    rows = passed.departures
    inside = (passed.left_ns[rows] >= run.steady_ns) & (passed.left_ns[rows] < run.stop_ns)
    acks = rows[inside & ~passed.is_data[rows]]
    if not len(acks):
        return (0,)
    service_ns = int(view.queue.service_ns(int(passed.packets.frame_bytes[acks].min())))
    return (ack_compression.bunch_sizes(passed.left_ns[acks], service_ns).max(),)


@estimates(Scope.CONNECTION, ACK_TO_DATA, ACKS_LOST)
def numbers(analysis: Analysis, view: ConnectionView) -> tuple[float, ...]:
    """Return ACKs per segment and ACKs lost, for ACKs sent in the steady window."""
    segments = len(analysis.run.select_steady(view.segments_in))
    return view.acks_sent / segments if segments else math.nan, view.acks_lost


@estimates(Scope.CONNECTION, ACK_SPACING_RATIO, ACKS_COMPRESSED)
def spacing(analysis: Analysis, view: ConnectionView) -> tuple[float, ...]:
    """Compare the spacing on arrival with the spacing when sent."""
    del analysis
    ratio = ack_compression.ack_spacing_ratio(view.acks.sent_ns, view.acks.arrived_ns)
    ratio = ratio[~np.isnan(ratio)]
    if not len(ratio):
        return math.nan, math.nan
    compressed = (ratio >= 0) & (ratio < ack_compression.COMPRESSED_BELOW)
    return float(np.median(ratio)), float(compressed.mean())


@estimates(
    Scope.CONNECTION,
    ACK_BUNCH_MEAN,
    ACK_BUNCH_MAX,
    ACK_BUNCH_MAX_SENT,
    host_errors={
        ACK_BUNCH_MEAN: HostError.BUNCH | HostError.MEAN,
        ACK_BUNCH_MAX: HostError.BUNCH,
        ACK_BUNCH_MAX_SENT: HostError.BUNCH,
    },
)
def bunches(analysis: Analysis, view: ConnectionView) -> tuple[float, ...]:
    """Return the mean and largest bunch on arrival, and the largest as sent."""
    del analysis
    arrived = ack_compression.bunch_sizes(view.acks.arrived_ns, view.ack_service_ns)
    sent = ack_compression.bunch_sizes(view.acks.sent_ns, view.ack_service_ns)
    mean = float(arrived.mean()) if len(arrived) else math.nan
    return mean, arrived.max(initial=0), sent.max(initial=0)


@estimates(
    Scope.CONNECTION,
    COMPRESSION_FACTOR,
    COMPRESSION_FACTOR_BOUND,
    host_errors=dict.fromkeys((COMPRESSION_FACTOR, COMPRESSION_FACTOR_BOUND), HostError.SPACING),
)
def compression_factor(analysis: Analysis, view: ConnectionView) -> tuple[float, ...]:
    """Return the median, and the bound if neither link's rate changes.

    Only ACKs of one segment count: an ACK of more segments is sent more than 1.05 of a segment's
    transmission times after the one before, and is left out.
    """
    del analysis
    factors = ack_compression.compression_factors(view.acks, view.data_service_ns)
    median = float(np.median(factors)) if len(factors) else math.nan
    if not (view.data_service_ns and view.ack_service_ns and view.has_one_rate):
        return median, math.nan
    return median, ack_compression.factor_bound(view.data_service_ns, view.ack_service_ns)
