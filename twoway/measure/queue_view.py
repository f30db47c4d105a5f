"""A bottleneck queue of a run, as metrics see it."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from capture_analysis.columns import IntArray, Packets

from twoway.contract.network import START_NS, Queue
from twoway.links.timetable import Timetable
from twoway.measure import channel
from twoway.measure.lanes import Lanes, numbers_of
from twoway.measure.medium import Holds
from twoway.measure.queues import Occupancy, Passage, occupancy


@dataclass(frozen=True)
class QueueView:
    """A bottleneck queue and the packets that passed it.

    Attributes:
        queue: the queue as the manifest describes it.
        passed: every packet offered, with the end of its transmission.
        length: a function that computes the queue's length over time.
        kernel: a function that computes bounds of the kernel's count over time. The lower one is
            without the packet in transmission, if the queue releases it when its transmission
            starts; the upper one is with packets that a managed queue holds and will drop. Both
            equal the length of a drop-tail queue.
        slots: a DTM channel's slots; None for other queues.
        table: the table of its changing rate; None for other queues.
        holds: the times at which its packets had the medium of a half-duplex link; None for other
            queues.
        late_ns: a function that computes the lateness of each departure.
    """

    queue: Queue
    passed: Passage
    length: Callable[[], Occupancy]
    kernel: Callable[[], tuple[Occupancy, Occupancy]]
    slots: channel.Slots | None
    table: Timetable | None
    holds: Holds | None
    late_ns: Callable[[], IntArray]

    def rate_bit(self, start_ns: int, stop_ns: int) -> float:
        """Compute the link's mean rate between two times, bit/s."""
        if self.table:
            offered = self.table.offered_bytes(START_NS, start_ns, stop_ns)
            return offered * 8e9 / (stop_ns - start_ns)
        if self.slots is None:
            return self.queue.rate_bit
        return self.slots.mean(start_ns, stop_ns) * self.slots.options.slot_bit

    @property
    def has_one_rate(self) -> bool:
        """True if the link's rate, and so each transmission time, never changes."""
        return self.table is None and (self.slots is None or len(self.slots.time_ns) == 1)

    def transmission_ns(self, packets: Packets) -> IntArray:
        """Compute the transmission times of packets behind the link, by their arrival.

        They are 0 where opportunities or a channel's slots decide when a packet leaves.

        Args:
            packets: packets that arrived behind the link's delay.
        """
        if self.has_one_rate:
            return np.asarray(self.queue.service_ns(packets.frame_bytes.astype(np.int64)))
        if not len(packets) or self.table is None or self.table.kind != "rates":
            return np.zeros(len(packets), dtype=np.int64)
        left_ns = packets.time_ns - self.queue.delay_ns
        rate = np.maximum(self.table.value_at(START_NS, left_ns), 1)
        return np.asarray(
            self.queue.link_bytes(packets.frame_bytes.astype(np.int64)) * 10**9 // rate
        )

    @property
    def all_packets(self) -> Occupancy:
        """The queue's length over time."""
        return self.length()

    @property
    def data_packets(self) -> Occupancy:
        """The queue's length over time, data packets alone; computed at each reading."""
        return occupancy(self.passed, self.passed.is_data)

    @property
    def error_ns(self) -> IntArray:
        """Shape (m,), lateness of each departure, computed at each reading."""
        return self.late_ns()

    @cached_property
    def lanes(self) -> Lanes:
        """The rows of `passed` by lane."""
        return Lanes(numbers_of(self.passed.packets))
