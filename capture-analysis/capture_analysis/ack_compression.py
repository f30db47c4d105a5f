"""Measure ACK compression between the ACKs' sender and the data's.

There are two vantages: near the sender of the ACKs and near the sender of the data.

Definitions: Zhang, Shenker, Clark 1991 (the mechanism), Paxson 1997 (the ratio of spacings).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from capture_analysis.columns import FLAG_FIN, FLAG_RST, FLAG_SYN, BoolArray, IntArray, Packets
from capture_analysis.errors import AnalysisError
from capture_analysis.two_captures.matching import partners

FloatArray = NDArray[np.float64]

# Paxson's threshold: clocks and jitter do not explain a spacing that shrank to less than this
# share.
COMPRESSED_BELOW = 0.75
# A gap of at most this many ACK transmission times counts as back to back.
BUNCH_SERVICE_TIMES = 2
# ACKs sent at most this many data transmission times apart answer back-to-back data.
BACK_TO_BACK = 1.05


@dataclass(frozen=True)
class AckTimes:
    """The same pure ACKs at both vantages; columns of shape (n,), in order.

    Attributes:
        sent_ns: time at which the receiver of the data sent each ACK.
        arrived_ns: time at which each ACK reached the sender of the data, on the same clock.
        frame_bytes: frame size of each ACK as captured.
    """

    sent_ns: IntArray
    arrived_ns: IntArray
    frame_bytes: IntArray


def match_acks(sent: Packets, arrived: Packets) -> tuple[AckTimes, int]:
    """Pair the pure ACKs captured near their sender and near their receiver.

    Returns: the pairs, in order of sending, and the number of sent ACKs that never arrived.
    """
    sent, arrived = sent.where(_pure_ack(sent)), arrived.where(_pure_ack(arrived))
    rows = partners(sent.key(), arrived.key())
    came = rows >= 0
    times = AckTimes(sent.time_ns[came], arrived.time_ns[rows[came]], sent.frame_bytes[came])
    return times, int((~came).sum())


def _pure_ack(packets: Packets) -> BoolArray:
    control = (packets.flags & (FLAG_SYN | FLAG_FIN | FLAG_RST)) != 0
    pure: BoolArray = (packets.payload_bytes == 0) & ~control
    return pure


def ack_spacing_ratio(sent_ns: IntArray, arrived_ns: IntArray) -> FloatArray:
    """Divide the spacing of ACKs on arrival by their spacing when sent.

    Args:
        sent_ns: shape (n,), int64 ns, time at which the receiver emitted each pure ACK; sorted.
        arrived_ns: shape (n,), time at which the same ACKs reached the data sender, same clock.

    Returns: shape (n-1,), dimensionless; below 1 is compressed; NaN where the sent spacing is 0.
    Raises: AnalysisError if lengths differ or sent_ns is not sorted.
    Source: Paxson 1997, section on ACK compression; deviation: single pairs, not groups of three.
    """
    if len(sent_ns) != len(arrived_ns):
        raise AnalysisError(f"{len(sent_ns)} sent ACKs but {len(arrived_ns)} arrived")
    sent_gap = np.diff(sent_ns)
    if (sent_gap < 0).any():
        raise AnalysisError("sent ACKs are not in time order")
    ratio = np.full(len(sent_gap), np.nan)
    defined = sent_gap > 0
    ratio[defined] = np.diff(arrived_ns)[defined] / sent_gap[defined]
    return ratio


def bunch_sizes(arrived_ns: IntArray, ack_service_ns: float) -> IntArray:
    """Count the ACKs of each bunch, in order of arrival.

    A bunch is a maximal run of ACKs whose gaps are at most BUNCH_SERVICE_TIMES times an ACK's
    transmission time on the bottleneck that the ACKs passed.

    Args:
        arrived_ns: shape (n,), sorted.
        ack_service_ns: transmission time of one ACK, ns.

    Returns: shape (k,), ACKs per bunch, 1 for an ACK on its own; sums to n.
    """
    if not len(arrived_ns):
        return np.zeros(0, dtype=np.int64)
    breaks = np.flatnonzero(np.diff(arrived_ns) > BUNCH_SERVICE_TIMES * ack_service_ns)
    return np.diff(np.concatenate(([0], breaks + 1, [len(arrived_ns)])))


def compression_factors(times: AckTimes, data_service_ns: float) -> FloatArray:
    """Compute the ratio of spacing when sent to spacing on arrival, for compressed ACKs.

    Only ACKs of back-to-back data count (sent at most BACK_TO_BACK data service times apart): a
    pause between two clusters may shrink without bound, which is no sign of compression.

    Args:
        times: the ACKs at both vantages.
        data_service_ns: transmission time of a data segment on its bottleneck, ns.

    Returns: shape (m,), each above 1 / COMPRESSED_BELOW; ties on arrival are left out.
    """
    ratio = ack_spacing_ratio(times.sent_ns, times.arrived_ns)
    back_to_back = np.diff(times.sent_ns) <= BACK_TO_BACK * data_service_ns
    compressed = ratio[back_to_back & (ratio < COMPRESSED_BELOW) & (ratio > 0)]
    return np.asarray(1 / compressed, dtype=np.float64)


def factor_bound(data_service_ns: float, ack_service_ns: float) -> float:
    """Return the largest compression factor that a shared queue can produce.

    ACKs are sent at least one data segment's transmission time apart (on the data's bottleneck) and
    arrive at least one ACK's transmission time apart (on the ACKs'). There is one ACK per segment.

    Args:
        data_service_ns: transmission time of one data segment on the forward bottleneck.
        ack_service_ns: transmission time of one ACK on the reverse bottleneck.
    """
    return data_service_ns / ack_service_ns
