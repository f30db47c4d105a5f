"""A first reading of two captures: what connects them, and how their clocks run."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from capture_analysis import clock
from capture_analysis.clock import Clock
from capture_analysis.columns import IntArray
from capture_analysis.envelope import Envelope
from capture_analysis.first_contact import Contact, Opener
from capture_analysis.matching import Matched, Rows, Side, match
from capture_analysis.packet_key import PacketKeys

# Clocks drift apart, and queues are long; packets farther apart are not taken for the same.
SURVEY_HORIZON_NS = 10_000_000_000
UNKNOWN = -1


@dataclass(frozen=True)
class Survey:
    """What is known of two captures after reading them once.

    Attributes:
        contact: how their packets are recognised, and roughly the offset.
        clock: how the second's clock runs.
        a_first: shape (flows of A,), which half passes A before B; UNKNOWN without a pair.
        flow_of_b: shape (flows of B,), A's number of each connection; UNKNOWN without a pair.
        turned: shape (flows of B,), 1 where A counts the halves the other way round.
        horizon_ns: no packet took longer from tap to tap.
        span_ns: when, on the first clock, both captures ran.
        pairs: packets found in both.
    """

    contact: Contact
    clock: Clock
    a_first: IntArray
    flow_of_b: IntArray
    turned: IntArray
    horizon_ns: int
    span_ns: tuple[int, int]
    pairs: int


class _Surveyor:
    def __init__(self, contact: Contact) -> None:
        self.contact = contact
        self.envelope = Envelope()
        self.farthest_ns = 0
        self.pairs = 0
        self.flow_of_b = np.zeros(0, dtype=np.int64)
        self.turned = np.zeros(0, dtype=np.int64)
        # Of each connection of A: for half 0 less half 1, the sum of signs of their differences.
        self._votes = np.zeros(0, dtype=np.int64)
        # Of each half of a connection of A: a pair's time and difference.
        self._sample = np.zeros((0, 2), dtype=np.int64)
        self._undecided: list[tuple[IntArray, IntArray]] = []

    def grow(self, flows_a: int, flows_b: int) -> None:
        """Make room for connections that have appeared."""
        self._votes = _extended(self._votes, flows_a, 0)
        self.flow_of_b = _extended(self.flow_of_b, flows_b, UNKNOWN)
        self.turned = _extended(self.turned, flows_b, 0)
        missing = 2 * flows_a - len(self._sample)
        if missing > 0:
            none = np.full((missing, 2), UNKNOWN, dtype=np.int64)
            self._sample = np.concatenate((self._sample, none))

    def add(self, found: Matched) -> None:
        a, b = found.a, found.b
        if not len(a):
            return
        self.pairs += len(a)
        flow, half, a_ns = a["flow"].astype(np.int64), a["half"], a["time_ns"]
        difference = b["time_ns"] - a_ns
        self.flow_of_b[b["flow"]] = flow
        self.turned[b["flow"]] = half ^ b["half"]
        lane = 2 * flow + half
        self._sample[lane, 0] = a_ns
        self._sample[lane, 1] = difference
        self._vote(lane, difference)
        votes = self._votes[flow]
        known = votes != 0
        self.envelope.add(
            a_ns[known],
            difference[known] + self.contact.offset_ns,
            ((votes > 0) ^ (half == 1))[known],
        )

    def _vote(self, lane: IntArray, difference: IntArray) -> None:
        """Which half of a connection passes A first shows the greater difference."""
        count = np.bincount(lane, minlength=len(self._sample)).reshape(-1, 2)
        total = np.bincount(lane, difference, minlength=len(self._sample)).reshape(-1, 2)
        both = np.flatnonzero((count > 0).all(axis=1))
        mean = total[both] / count[both]
        self._votes[both] += np.sign(mean[:, 0] - mean[:, 1]).astype(np.int64)


def _extended(column: IntArray, length: int, value: int) -> IntArray:
    missing = length - len(column)
    if missing <= 0:
        return column
    return np.concatenate((column, np.full(missing, value, dtype=np.int64)))
