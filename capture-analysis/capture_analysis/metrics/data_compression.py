"""Compression of data: packets arrive faster than their bottleneck sends.

A second queue behind the bottleneck compresses them.

    xi = (dT_r + C_r) / ((n - 1) * Q_b)        event if xi < 0.75 over at least three packets

r: arrival at the second tap, C_r its resolution, Q_b the transmission time of the packets at the
bottleneck between the taps (Paxson 1997, section on data packet compression; his Q_b comes from the
receiver's trace, ours from packets that waited between the taps). Unit 1. It is rare, because it
takes a second queue between the bottleneck and the tap.
"""

import numpy as np

from capture_analysis.ack_compression import COMPRESSED_BELOW
from capture_analysis.definition import Definition
from capture_analysis.facts.running_totals import LaneArray, Previous
from capture_analysis.metrics.ack_bunches import BUNCH_ACKS
from capture_analysis.metrics.compression_factor import NO_BOTTLENECK
from capture_analysis.overriding import override
from capture_analysis.streaks import StreakFinder, Streaks
from capture_analysis.two_captures.from_pair import FromPair, Step, Values
from capture_analysis.two_captures.packets_between import Crossings

DATA_COMPRESSION_EVENTS = Definition(
    "data_compression_events",
    "1",
    "runs of three data packets or more that arrive at 4/3 of their bottleneck's rate, or faster",
    "Paxson 1997",
)
DATA_COMPRESSION_PACKETS = Definition(
    "data_compression_packets",
    "packets",
    "data packets in `data_compression_events`",
    "Paxson 1997",
)


class DataCompression(FromPair):
    """Runs of data packets that arrive faster than their bottleneck transmits."""

    title = "Compression of data packets"
    per_direction = (DATA_COMPRESSION_EVENTS, DATA_COMPRESSION_PACKETS)

    @override
    def start(self) -> None:
        self._previous = Previous()
        self._finders = StreakFinder(2, BUNCH_ACKS), StreakFinder(2, BUNCH_ACKS)
        self._events = LaneArray(np.add, 0, 2)

    @override
    def add(self, step: Step) -> None:
        for crossings, finder in zip(step.crossings, self._finders, strict=True):
            data_ns = self.facts.directions[crossings.path_direction].data_ns
            if len(crossings.arrived) and data_ns is not None:
                self._take(crossings, finder)

    def _take(self, crossings: Crossings, finder: StreakFinder) -> None:
        data = crossings.arrived_data
        if not len(data):
            return
        arrived = data["second_ns"]
        before = self._previous.take_previous(data.directions, data.starts, arrived)
        gap = np.where(before == -1, -1, arrived - before)
        ns_per_byte = self.facts.directions[crossings.path_direction].ns_per_byte or 0.0
        needed = data["frame_bytes"] * ns_per_byte
        joined = (gap >= 0) & (gap < COMPRESSED_BELOW * needed)
        values = (gap * joined, (needed * joined).astype(np.int64))
        self._count(finder.add(data.direction, joined, arrived, values), crossings.path_direction)

    @override
    def finish(self) -> None:
        for path_direction, finder in enumerate(self._finders):
            self._count(finder.finish(), path_direction)

    def _count(self, streaks: Streaks, path_direction: int) -> None:
        taken = streaks.total[0] + self.facts.resolution_ns[1 - path_direction]
        streaks = streaks.where(taken < COMPRESSED_BELOW * streaks.total[1])
        found = np.stack((np.ones_like(streaks.rows), streaks.rows), axis=1)
        self._events.add_rows(streaks.lane, found)

    @override
    def of_direction(self, direction: int) -> Values:
        if all(each.data_ns is None for each in self.facts.directions):
            return dict.fromkeys(self.per_direction, NO_BOTTLENECK)
        events, packets = (int(n) for n in self._events.value_of(direction))
        return {DATA_COMPRESSION_EVENTS: events, DATA_COMPRESSION_PACKETS: packets}
