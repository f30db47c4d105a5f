"""Everything measured on one run, shared by metrics, figures and report."""

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
from capture_analysis import ack_compression
from capture_analysis.ack_compression import AckTimes
from capture_analysis.columns import BoolArray, IntArray, Packets, merge
from capture_analysis.congestion_epochs import CongestionEpochs, congestion_epochs
from capture_analysis.errors import AnalysisError

from twoway.contract.network import Connection, Queue
from twoway.measure import channel, throughput
from twoway.measure.busy_periods import BusyPeriods, busy_periods
from twoway.measure.queues import (
    Occupancy,
    Passage,
    lingering,
    lost_between,
    occupancy,
    passage,
    service_error_ns,
    transmitted,
)
from twoway.measure.run_folder import Run
from twoway.theory.dtm import SLOT_BIT

ETHERNET_BYTES = 14


@dataclass(frozen=True)
class QueueView:
    """A bottleneck queue and the packets that passed it.

    Attributes:
        queue: the queue as the manifest describes it.
        passed: every packet offered, with the end of its transmission.
        all_packets: the queue's length over time.
        kernel_least: lower bound of the kernel's count: without the packet in transmission, if the
            queue hands it over when its transmission starts.
        kernel_most: upper bound of the kernel's count: with packets that a managed queue holds and
            will drop. Both bounds equal `all_packets` for a drop-tail queue.
        data_packets: the queue's length over time, data packets alone.
        slots: a DTM channel's slots; None for other queues.
        error_ns: shape (m,), how late each departure was.
    """

    queue: Queue
    passed: Passage
    all_packets: Occupancy
    kernel_least: Occupancy
    kernel_most: Occupancy
    data_packets: Occupancy
    slots: channel.Slots | None
    error_ns: IntArray

    def rate_bit(self, start_ns: int, stop_ns: int) -> float:
        """Compute the link's mean rate between two times, bit/s."""
        if self.slots is None:
            return self.queue.rate_bit
        return self.slots.mean(start_ns, stop_ns) * SLOT_BIT

    @property
    def has_one_rate(self) -> bool:
        """True if the link's rate, hence transmission time, never changes."""
        return self.slots is None or len(self.slots.time_ns) == 1


@dataclass(frozen=True)
class ConnectionView:
    """One connection: data and ACKs at both ends, data in the queue."""

    connection: Connection
    forward: QueueView
    reverse: QueueView
    sent: Packets = field(repr=False)
    arrived: Packets = field(repr=False)
    acks: AckTimes = field(repr=False)
    queued: Occupancy = field(repr=False)
    acks_sent: int = 0
    acks_lost: int = 0

    @cached_property
    def segment_frame_bytes(self) -> int:
        """Captured size of the largest data segment, 0 if none arrived."""
        data = self.arrived.payload_bytes > 0
        return int(self.arrived.frame_bytes[data].max(initial=0))

    @cached_property
    def ack_frame_bytes(self) -> int:
        """Captured size of the smallest ACK: ACKs with SACK are larger."""
        return int(self.acks.frame_bytes.min()) if len(self.acks.frame_bytes) else 0

    @property
    def has_one_rate(self) -> bool:
        """True if neither bottleneck's rate changes: compression has a bound."""
        return self.forward.has_one_rate and self.reverse.has_one_rate

    @property
    def data_service_ns(self) -> int:
        """Transmission time of a full segment on its bottleneck, 0 if none."""
        size = self.segment_frame_bytes
        return int(self.forward.queue.service_ns(size)) if size else 0

    @property
    def ack_service_ns(self) -> int:
        """Transmission time of an ACK on the reverse bottleneck, 0 if none."""
        size = self.ack_frame_bytes
        return int(self.reverse.queue.service_ns(size)) if size else 0


@dataclass(frozen=True)
class LinkView:
    """What became of the packets that left a connection's last queue, in order.

    Attributes:
        is_data: shape (n,), it carries data.
        lost: shape (n,), it never arrived.
        under_way: shape (n,), it may still have been on its way when the captures ended.
    """

    is_data: BoolArray
    lost: BoolArray
    under_way: BoolArray


class Analysis:
    """The measurements of one run, each computed when it is first used.

    Args:
        folder: a run's folder.

    Raises: AnalysisError if the folder or its captures cannot be used.
    """

    def __init__(self, folder: Path) -> None:
        self.run = Run(folder)

    @cached_property
    def queues(self) -> dict[str, QueueView]:
        """Queues by direction."""
        return {q.direction: self._queue(q) for q in self.run.queues}

    @cached_property
    def connections(self) -> dict[str, ConnectionView]:
        """Connections by name."""
        return {c.name: self._connection(c) for c in self.run.connections}

    @cached_property
    def socket_samples(self) -> dict[str, IntArray]:
        """Columns of the samples of TCP_INFO: time_ns on the host's clock, source_port, cwnd."""
        columns = ("time_ns", "source_port", "cwnd")
        table = self.run.table("sockets/tcp-info.csv", *columns)
        return {name: np.array(table[name], dtype=np.int64) for name in columns}

    def busy(self, view: QueueView) -> BusyPeriods:
        """Find a queue's busy periods in the steady window."""
        return busy_periods(view.passed, self.run.steady_ns, self.run.stop_ns)

    def _queue(self, queue: Queue) -> QueueView:
        run = self.run
        try:
            seen = passage(
                queue, run.entering(queue), run.capture(queue.interface), run.last_seen_ns
            )
        except AnalysisError as error:
            if lost := run.manifest.lost_by_captures:
                raise AnalysisError(f"{error}; captures lost packets: {lost}") from error
            raise
        passed = transmitted(queue, seen)
        slots = channel.read_slots(run, queue) if queue.reallocations else None
        return QueueView(
            queue=queue,
            passed=passed,
            all_packets=occupancy(passed),
            kernel_least=occupancy(seen),
            kernel_most=occupancy(lingering(queue, seen)),
            data_packets=occupancy(passed, passed.is_data),
            slots=slots,
            error_ns=channel.service_error_ns(queue, slots, passed)
            if slots
            else service_error_ns(queue, passed),
        )

    def _connection(self, connection: Connection) -> ConnectionView:
        run = self.run
        for direction in (connection.direction, connection.ack_direction):
            if direction not in self.queues:
                raise AnalysisError(f'{connection.name}: no queue has direction "{direction}"')
        acks_out = run.steady(run.between(connection.sink_interface, connection, forward=False))
        acks_in = run.between(connection.source_interface, connection, forward=False)
        times, lost = ack_compression.match_acks(acks_out, acks_in)
        passed = self.queues[connection.direction].passed
        mine = run.belongs(passed.packets, connection, forward=True)
        return ConnectionView(
            connection=connection,
            forward=self.queues[connection.direction],
            reverse=self.queues[connection.ack_direction],
            sent=run.between(connection.source_interface, connection, forward=True),
            arrived=run.between(connection.sink_interface, connection, forward=True),
            acks=times,
            queued=occupancy(passed, passed.is_data & mine),
            acks_sent=len(times.sent_ns) + lost,
            acks_lost=lost,
        )

    def goodput_bit(self, view: ConnectionView) -> float:
        """Compute a connection's goodput in the steady window, bit/s."""
        run = self.run
        payload = throughput.new_payload_bytes(view.arrived, run.steady_ns, run.stop_ns)
        return payload * 8 * 1e9 / run.window_ns

    def lost(self, view: ConnectionView) -> Packets:
        """List a connection's data packets that queues dropped (see `drops`)."""
        drops = merge([self.drops(queue) for queue in self.queues.values()])
        mine = self.run.belongs(drops, view.connection, forward=True)
        return drops.where(mine).data()

    def link(self, connection: Connection, *, forward: bool = True) -> LinkView | None:
        """Look at the packets behind a connection's last queue; None if no link loses packets.

        Args:
            connection: the connection.
            forward: its packets from source to sink; False: from sink to source.
        """
        run = self.run
        if not run.loses_on_links:
            return None
        names = connection.directions if forward else connection.ack_directions
        end = connection.sink_interface if forward else connection.source_interface
        last = self.queues[names[-1]].queue
        left = run.between(last.interface, connection, forward=forward)
        under_way = left.time_ns + last.delay_ns >= run.last_seen_ns
        missing = lost_between(left, run.between(end, connection, forward=forward))
        return LinkView(left.payload_bytes > 0, missing & ~under_way, missing & under_way)

    @cached_property
    def congestion_epochs(self) -> CongestionEpochs:
        """Congestion epochs of the steady window: clusters of data drops.

        Two epochs are separated by at least the longest round trip.
        """
        run = self.run
        lost_ns = [self.lost(view).time_ns for view in self.connections.values()]
        victim = np.repeat(np.arange(len(lost_ns)), [len(each) for each in lost_ns])
        time_ns = np.concatenate(lost_ns)
        order = np.argsort(time_ns, kind="stable")
        found = congestion_epochs(time_ns[order], victim[order], self.longest_round_trip_ns)
        return found.within(run.steady_ns, run.stop_ns)

    @cached_property
    def longest_round_trip_ns(self) -> int:
        """Round trip with all queues full of their largest frames, ns."""
        return sum(
            view.queue.delay_ns
            + view.queue.limit_packets
            * int(view.queue.service_ns(view.passed.packets.frame_bytes.max(initial=0)))
            for view in self.queues.values()
        )

    def queue_epochs(self, view: QueueView, gap_ns: int) -> CongestionEpochs:
        """Find the clusters of one queue's drops that start in the steady window.

        Args:
            view: the queue.
            gap_ns: the least time between two clusters.

        Returns: clusters of data and ACKs, whose victims are not set.
        """
        time_ns = self.drops(view).time_ns
        nobody = np.zeros(len(time_ns), dtype=np.int64)
        found = congestion_epochs(time_ns, nobody, gap_ns)
        return found.within(self.run.steady_ns, self.run.stop_ns)

    def drops(self, view: QueueView) -> Packets:
        """List a queue's drops from start of capture to end of traffic."""
        packets = view.passed.packets.where(view.passed.dropped)
        return packets.where(packets.time_ns < self.run.stop_ns)
