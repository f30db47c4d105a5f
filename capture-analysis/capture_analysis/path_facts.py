"""What lies between the taps: shortest delays, and how long the bottleneck takes for a packet."""

from dataclasses import dataclass

import numpy as np

from capture_analysis.columns import IntArray
from capture_analysis.crossings import ABSENT, Crossings, is_ack, is_data

# Of so many packets that waited, the median of the gaps in front is taken.
ENOUGH = 20
_KEPT = 1 << 16


@dataclass(frozen=True)
class WayFacts:
    """One way between the taps.

    Attributes:
        shortest_ns: least delay of any packet.
        data_ns: transmission time of the largest frames with data; None if none waited.
        data_bytes: size of those frames as captured.
        ack_ns: transmission time of pure ACKs; None if none waited.
        ack_bytes: size of most of those.
        waited: packets that show it.
    """

    shortest_ns: int
    data_ns: float | None
    data_bytes: int
    ack_ns: float | None
    ack_bytes: int
    waited: int

    @property
    def propagation_ns(self) -> int:
        """What even a packet without transmission time needs; the least if that is unknown."""
        served = [each for each in (self.ack_ns, self.data_ns) if each is not None]
        return max(self.shortest_ns - round(served[0]), 0) if served else self.shortest_ns

    @property
    def ns_per_byte(self) -> float | None:
        """Transmission time of a captured byte of data, or of ACKs where no data waited."""
        if self.data_ns is not None:
            return self.data_ns / self.data_bytes
        return None if self.ack_ns is None else self.ack_ns / self.ack_bytes


@dataclass(frozen=True)
class PathFacts:
    """Both ways, and the clocks' resolution.

    Attributes:
        ways: from the first tap to the second, and back.
        resolution_ns: of the time stamps of each capture.
        longest_round_trip_ns: no packet and its answer took longer between the taps.
    """

    ways: tuple[WayFacts, WayFacts]
    resolution_ns: tuple[int, int]
    longest_round_trip_ns: int


class WaySurvey:
    """Collects what `WayFacts` states from a beginning of the packets.

    A packet that came to the first tap before the one in front of it can have left the bottleneck
    waited for it; then what lies between both at the second tap is its transmission time.
    """

    def __init__(self, shortest_ns: int) -> None:
        self.shortest_ns = shortest_ns
        self._gaps: dict[bool, list[IntArray]] = {True: [], False: []}
        self._last_ns = ABSENT
        self._kept = 0

    def add(self, crossings: Crossings) -> None:
        """Take the next packets."""
        rows = crossings.arrived
        if not len(rows) or self._kept > _KEPT:
            return
        second_ns = rows["second_ns"].copy()
        before = np.concatenate(([self._last_ns], second_ns[:-1]))
        self._last_ns = int(second_ns[-1])
        first_ns = rows["first_ns"]
        waited = (first_ns != ABSENT) & (before != ABSENT)
        waited &= first_ns < before - self.shortest_ns
        for with_data, kind in ((True, is_data(rows)), (False, is_ack(rows))):
            which = waited & kind
            sizes = rows["frame_bytes"][which].astype(np.int64)
            self._gaps[with_data].append(np.stack((sizes, (second_ns - before)[which])))
            self._kept += len(sizes)

    def facts(self) -> WayFacts:
        """What was found."""
        data_bytes, data_ns, many = self._of(with_data=True)
        ack_bytes, ack_ns, more = self._of(with_data=False)
        return WayFacts(self.shortest_ns, data_ns, data_bytes, ack_ns, ack_bytes, many + more)

    def _of(self, *, with_data: bool) -> tuple[int, float | None, int]:
        """Size, median transmission time and number of the most frequent size."""
        sizes, gaps = np.concatenate([np.zeros((2, 0), np.int64), *self._gaps[with_data]], axis=1)
        if not len(sizes):
            return 0, None, 0
        each, counts = np.unique(sizes, return_counts=True)
        size = int(each[counts.argmax()])
        gaps = gaps[sizes == size]
        return size, float(np.median(gaps)) if len(gaps) >= ENOUGH else None, len(gaps)
