"""Measure the path between the taps: delays and transmission times."""

from dataclasses import dataclass

import numpy as np

from capture_analysis.columns import IntArray
from capture_analysis.two_captures.matching import FOREVER
from capture_analysis.two_captures.packets_between import ABSENT, Crossings, is_ack, is_data

# A transmission time is a median gap; it needs at least this number of waiting packets.
MIN_WAITING_PACKETS = 20
# Facts are measured on the first packets of each direction of the path.
HEAD_PACKETS = 1 << 15


@dataclass(frozen=True)
class DirectionFacts:
    """Facts of one direction of the path between the taps.

    Attributes:
        shortest_ns: shortest delay of any packet.
        propagation_ns: delay of a packet without transmission time; shortest_ns if transmission
            times are unknown.
        data_ns: transmission time of the most frequent frames with data, above 0; None if too few
            waited, or if they left in one instant, as in an opportunity of a trace.
        data_bytes: size of these frames as captured.
        ack_ns: the same of the most frequent pure ACKs.
        ack_bytes: size of these ACKs as captured.
        waited: number of packets behind the transmission times.
    """

    shortest_ns: int
    propagation_ns: int
    data_ns: float | None
    data_bytes: int
    ack_ns: float | None
    ack_bytes: int
    waited: int

    @property
    def ns_per_byte(self) -> float | None:
        """Transmission time of a byte of data, or of ACKs if no data waited."""
        if self.data_ns is not None:
            return self.data_ns / self.data_bytes
        return None if self.ack_ns is None else self.ack_ns / self.ack_bytes


@dataclass(frozen=True)
class PathFacts:
    """Facts of both directions of the path, and the clocks' resolution.

    Attributes:
        directions: from the first tap to the second, and back.
        resolution_ns: resolution of the time stamps of each capture.
        longest_round_trip_ns: bound of a round trip between the taps.
    """

    directions: tuple[DirectionFacts, DirectionFacts]
    resolution_ns: tuple[int, int]
    longest_round_trip_ns: int


class DirectionSurvey:
    """Measures `DirectionFacts` from the first packets of one direction of the path.

    A packet that came to the first tap before its predecessor can have left the bottleneck waited
    for the predecessor; the gap between both at the second tap is then its transmission time.

    Args:
        shortest_ns: shortest delay of any packet.

    Attributes:
        full_ns: arrival of the last of the packets to be measured; FOREVER until then.
    """

    def __init__(self, shortest_ns: int) -> None:
        self.shortest_ns = shortest_ns
        self._data, self._acks = _Sizes(), _Sizes()
        self._last_ns = ABSENT
        self._seen = 0
        self.full_ns = FOREVER

    def add(self, crossings: Crossings) -> None:
        """Take the next packets."""
        rows = crossings.arrived
        if not len(rows):
            return
        last = HEAD_PACKETS - self._seen - 1
        if last < len(rows):
            self.full_ns = min(self.full_ns, int(rows["second_ns"][max(last, 0)]))
        self._seen += len(rows)
        first_ns, second_ns = rows["first_ns"].copy(), rows["second_ns"].copy()
        before = np.concatenate(([self._last_ns], second_ns[:-1]))
        self._last_ns = int(second_ns[-1])
        known = first_ns != ABSENT
        waited = known & (before != ABSENT) & (first_ns < before - self.shortest_ns)
        for sizes, kind in ((self._data, is_data(rows)), (self._acks, is_ack(rows))):
            here = known & kind
            sizes.add(
                second_ns[here],
                rows["frame_bytes"][here].astype(np.int64),
                (second_ns - first_ns)[here],
                np.where(waited, second_ns - before, -1)[here],
            )

    def facts(self, until_ns: int) -> DirectionFacts:
        """Compute the facts from the packets that arrived until a time."""
        self._data.drop_until(until_ns)
        self._acks.drop_until(until_ns)
        data_bytes, data_ns, many = self._data.transmission()
        ack_bytes, ack_ns, more = self._acks.transmission()
        known = [
            time_ns / size
            for time_ns, size in ((data_ns, data_bytes), (ack_ns, ack_bytes))
            if time_ns is not None
        ]
        rest = []
        for sizes, size, time_ns in (
            (self._data, data_bytes, data_ns),
            (self._acks, ack_bytes, ack_ns),
        ):
            if known and size:
                guess = known[0] * size
                rest.append(sizes.shortest_ns(size) - (guess if time_ns is None else time_ns))
        propagation_ns = max(round(min(rest)), 0) if rest else self.shortest_ns
        return DirectionFacts(
            self.shortest_ns, propagation_ns, data_ns, data_bytes, ack_ns, ack_bytes, many + more
        )


class _Sizes:
    """Packets by arrival, size, delay, and gap; -1 unless they waited."""

    def __init__(self) -> None:
        self._rows = [np.zeros((4, 0), dtype=np.int64)]

    def add(self, at_ns: IntArray, size: IntArray, delay_ns: IntArray, gap_ns: IntArray) -> None:
        self._rows.append(np.stack((at_ns, size, delay_ns, gap_ns)))

    def drop_until(self, until_ns: int) -> None:
        rows = np.concatenate(self._rows, axis=1)
        self._rows = [rows[:, rows[0] <= until_ns]]

    def transmission(self) -> tuple[int, float | None, int]:
        """Return the most frequent size, its transmission time, and the number of samples."""
        _, size, _, gap_ns = np.concatenate(self._rows, axis=1)
        if not len(size):
            return 0, None, 0
        sizes, counts = np.unique(size, return_counts=True)
        most = int(sizes[counts.argmax()])
        waited = gap_ns[(size == most) & (gap_ns >= 0)]
        time_ns = float(np.median(waited)) if len(waited) >= MIN_WAITING_PACKETS else 0
        return most, time_ns or None, len(waited)

    def shortest_ns(self, size: int) -> int:
        """Return the shortest delay of packets of a size."""
        _, sizes, delay_ns, _ = np.concatenate(self._rows, axis=1)
        return int(delay_ns[sizes == size].min())
