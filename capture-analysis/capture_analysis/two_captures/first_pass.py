"""Read two captures once, for connections, order of taps and clocks."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np

from capture_analysis.clock import clock
from capture_analysis.clock.clock import Clock
from capture_analysis.clock.envelope import Envelope
from capture_analysis.columns import IntArray
from capture_analysis.two_captures.matching import (
    FOREVER,
    UNKNOWN,
    WAITING_LIMIT,
    CaptureReader,
    Matched,
    match,
    own_clock,
)
from capture_analysis.two_captures.packet_key import PacketKeys
from capture_analysis.two_captures.rough_offset import Contact, Opener

# Packets farther apart in time do not count as the same; drift and long queues need this room.
SURVEY_HORIZON_NS = 10_000_000_000
# Added to the longest delay seen, for errors of time stamping.
MARGIN_NS = 1_000_000


@dataclass(frozen=True)
class Survey:
    """The results of reading two captures once.

    Attributes:
        contact: the identity by which packets are recognised, and the rough offset.
        clock: the second capture's clock relative to the first's.
        first_half: shape (flows of A,), the half that passes A before B; UNKNOWN without a pair.
        flow_of_b: shape (flows of B,), A's number of each connection; UNKNOWN without a pair.
        turned: shape (flows of B,), 1 where A has source and destination exchanged.
        horizon_ns: bound of a packet's time from tap to tap.
        a_span_ns: time of the first capture's first and last packet.
        b_span_ns: time of the second capture's first and last packet, on the first's clock.
        common_ns: for packets that pass A first, and for those that pass B first: the times at
            which the first and the last packet of both captures passed the first of its taps.
        pairs: number of packets found in both captures.
        warnings: sentences.
    """

    contact: Contact
    clock: Clock
    first_half: IntArray
    flow_of_b: IntArray
    turned: IntArray
    horizon_ns: int
    a_span_ns: tuple[int, int]
    b_span_ns: tuple[int, int]
    common_ns: tuple[tuple[int, int], tuple[int, int]]
    pairs: int
    warnings: tuple[str, ...]


def first_pass(
    open_a: Opener, open_b: Opener, contact: Contact, *, one_clock: bool = False
) -> Survey:
    """Read both captures for connections, order of the taps, and clocks.

    Args:
        open_a: opens the first capture from its start.
        open_b: opens the second capture from its start.
        contact: the result from their first common packets.
        one_clock: True if both captures are known to have the same clock.
    """
    surveyor = _Surveyor(contact)
    for a_passes_first in (None, True):
        a = CaptureReader(open_a(), PacketKeys(contact.identity), own_clock)
        b = CaptureReader(open_b(), PacketKeys(contact.identity), lambda t: t - contact.offset_ns)
        surveyor = _Surveyor(contact, a_passes_first)
        for found in match(a, b, SURVEY_HORIZON_NS):
            surveyor.add(found, len(a.source.flows), len(b.source.flows))
        if surveyor.directed or not surveyor.pairs:
            break
    return surveyor.result(a, b, one_clock=one_clock)


class _Surveyor:
    """Learns connections, order of taps and clock bounds from pairs.

    Args:
        contact: see `first_pass`.
        a_passes_first: assume that every packet passes A first; for captures in which no
            connection shows the order of the taps.
    """

    def __init__(self, contact: Contact, a_passes_first: bool | None = None) -> None:
        self.contact, self.a_passes_first = contact, a_passes_first
        self.envelope = Envelope()
        self.pairs = 0
        self.flow_of_b = np.zeros(0, dtype=np.int64)
        self.turned = np.zeros(0, dtype=np.int64)
        # For each connection of A: number of blocks in which half 0 has the greater difference,
        # minus number of those in which half 1 has it.
        self._votes = np.zeros(0, dtype=np.int64)
        # For each half of a connection of A: both times of one pair.
        self._sample = np.zeros((0, 2), dtype=np.int64)
        # Times at which common packets passed the first of their taps, by that tap's own clock.
        self._common_ns = [(FOREVER, -FOREVER), (FOREVER, -FOREVER)]

    @property
    def directed(self) -> bool:
        """True if a connection shows the order of the taps."""
        return bool(self._votes.any())

    def add(self, found: Matched, flows_a: int, flows_b: int) -> None:
        """Take pairs, given the present numbers of connections."""
        self._grow(flows_a, flows_b)
        a, b = found.a, found.b
        if not len(a):
            return
        self.pairs += len(a)
        flow, half, a_ns = a["flow"].astype(np.int64), a["half"].copy(), a["time_ns"].copy()
        b_ns = b["time_ns"] + self.contact.offset_ns
        b_flow = b["flow"].astype(np.int64)
        self.flow_of_b[b_flow] = flow
        self.turned[b_flow] = half ^ b["half"]
        lane = 2 * flow + half
        self._sample[lane, 0] = a_ns
        self._sample[lane, 1] = b_ns
        self._vote(lane, b["time_ns"] - a_ns)
        votes = self._votes.take(flow)
        known, a_first = votes != 0, (votes > 0) ^ (half == 1)
        if self.a_passes_first is not None:
            known[:] = a_first[:] = True
        if not known.all():
            a_ns, b_ns, a_first = a_ns[known], b_ns[known], a_first[known]
        self.envelope.add(a_ns, b_ns - a_ns, a_first)
        for direction, time_ns in enumerate((a_ns[a_first], b_ns[~a_first])):
            first, last = self._common_ns[direction]
            self._common_ns[direction] = (
                min(first, int(time_ns.min(initial=FOREVER))),
                max(last, int(time_ns.max(initial=-FOREVER))),
            )

    def _grow(self, flows_a: int, flows_b: int) -> None:
        self._votes = _extended(self._votes, flows_a, 0)
        self.flow_of_b = _extended(self.flow_of_b, flows_b, UNKNOWN)
        self.turned = _extended(self.turned, flows_b, 0)
        missing = 2 * flows_a - len(self._sample)
        if missing > 0:
            none = np.full((missing, 2), UNKNOWN, dtype=np.int64)
            self._sample = np.concatenate((self._sample, none))

    def _vote(self, lane: IntArray, difference: IntArray) -> None:
        """Vote for the direction that passes A first: its difference b - a is the greater one.

        The differences of the two directions are a round trip apart.
        """
        lanes = len(self._sample)
        count = np.bincount(lane, minlength=lanes).reshape(-1, 2)
        total = np.bincount(lane, difference, minlength=lanes).reshape(-1, 2)
        both = np.flatnonzero((count > 0).all(axis=1))
        mean = total[both] / count[both]
        self._votes[both] += np.sign(mean[:, 0] - mean[:, 1]).astype(np.int64)

    def result(self, a: CaptureReader, b: CaptureReader, *, one_clock: bool) -> Survey:
        """Return the survey, after both captures have been read to their ends."""
        fitted = clock.same_clock(self.envelope) if one_clock else clock.fit(self.envelope)
        slowest_ns = clock.slowest_ns(fitted, self.envelope)
        b_span = fitted.on_first(np.array([b.first_ns, b.last_ns]) + self.contact.offset_ns)
        return Survey(
            self.contact,
            fitted,
            self._first_half(fitted),
            self.flow_of_b,
            self.turned,
            min(slowest_ns + MARGIN_NS, SURVEY_HORIZON_NS),
            (a.first_ns, a.last_ns),
            (int(b_span[0]), int(b_span[1])),
            self._common(fitted),
            self.pairs,
            tuple(self._warnings(fitted, a, b)),
        )

    def _common(self, fitted: Clock) -> tuple[tuple[int, int], tuple[int, int]]:
        first, last = self._common_ns[1]
        if first > last:
            return self._common_ns[0], (first, last)
        b_first, b_last = fitted.on_first(np.array([first, last])).tolist()
        return self._common_ns[0], (b_first, b_last)

    def _first_half(self, fitted: Clock) -> IntArray:
        """Find the half of each connection that passes A first, (flows of A,).

        The majority of blocks decides, or a pair's delay if only one half has pairs.
        """
        first_half = np.where(self._votes > 0, 0, np.where(self._votes < 0, 1, UNKNOWN))
        delay = fitted.on_first(self._sample[:, 1]) - self._sample[:, 0]
        seen = (self._sample[:, 0] != UNKNOWN).reshape(-1, 2)
        a_first = (delay >= 0).reshape(-1, 2)
        for half in (0, 1):
            rows = (first_half == UNKNOWN) & seen[:, half]
            first_half[rows] = np.where(a_first[rows, half], half, 1 - half)
        return first_half

    def _warnings(self, fitted: Clock, a: CaptureReader, b: CaptureReader) -> Iterator[str]:
        if self.a_passes_first is not None:
            yield (
                "no connection has packets of both directions in both captures: the first capture"
                " is taken to be nearer their senders"
            )
        if not self.contact.identity.addresses:
            yield "addresses or ports are translated between the taps: packets matched without"
        if not self.contact.identity.ip_id:
            yield "IP identifications are not the same at both taps: packets matched without"
        for time_ns, size_ns in fitted.steps:
            when = datetime.fromtimestamp(time_ns / 1e9, UTC).isoformat()
            yield f"the second capture's clock was set by {size_ns} ns at {when}"
        for name, reader in (("first", a), ("second", b)):
            if reader.given_up:
                yield (
                    f"{reader.given_up} packets of the {name} capture were given up: more "
                    f"than {WAITING_LIMIT} had no partner at a time"
                )


def _extended(column: IntArray, length: int, value: int) -> IntArray:
    missing = length - len(column)
    if missing <= 0:
        return column
    return np.concatenate((column, np.full(missing, value, dtype=np.int64)))
