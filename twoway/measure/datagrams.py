"""The packets of a UDP flow at both ends: their arrivals and delays."""

from dataclasses import dataclass

import numpy as np
from capture_analysis.ack_compression import FloatArray
from capture_analysis.columns import BoolArray, IntArray, Packets

from twoway.contract.network import DatagramFlow

_JITTER_GAIN = 1 / 16  # RFC 3550, section 6.4.1


@dataclass(frozen=True)
class DatagramView:
    """A UDP flow.

    Attributes:
        flow: the flow as the manifest describes it.
        sent: shape (n,), its packets as they left their sender.
        arrived_ns: shape (n,), arrival of each; -1 if it did not arrive.
        known: shape (n,), False for packets that were still on their way as the captures ended.
    """

    flow: DatagramFlow
    sent: Packets
    arrived_ns: IntArray
    known: BoolArray

    @property
    def lost(self) -> BoolArray:
        """Shape (n,): True if the network lost the packet."""
        return self.known & (self.arrived_ns < 0)


def join(flow: DatagramFlow, sent: Packets, arrived: Packets, unfinished: Packets) -> DatagramView:
    """Find the arrival of each packet; the number in its payload makes each key unique.

    Args:
        flow: the flow.
        sent: its packets at the sender.
        arrived: its packets at the receiver.
        unfinished: packets that were in queues or on links as the captures ended.
    """
    key, there = sent.key(), arrived.key()
    order = np.argsort(there, kind="stable")
    arrived_ns = np.full(len(key), -1, dtype=np.int64)
    if len(order):
        place = np.minimum(np.searchsorted(there[order], key), len(order) - 1)
        found = there[order][place] == key
        arrived_ns[found] = arrived.time_ns[order][place[found]]
    return DatagramView(flow, sent, arrived_ns, ~np.isin(key, unfinished.key()))


def jitter_ns(sent_ns: IntArray, arrived_ns: IntArray) -> FloatArray:
    """Compute RFC 3550's running estimate of the jitter.

    Args:
        sent_ns: shape (n,), in the order of arrival.
        arrived_ns: shape (n,), sorted.

    Returns: shape (n,), ns, the estimate after each packet; 0 after the first.
    Source: RFC 3550, section 6.4.1: J += (|D| - J) / 16.
    """
    estimate, found = 0.0, [0.0] if len(sent_ns) else []
    for differs in np.abs(np.diff(arrived_ns - sent_ns)).tolist():
        estimate += (differs - estimate) * _JITTER_GAIN
        found.append(estimate)
    return np.array(found, dtype=np.float64)
