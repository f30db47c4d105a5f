"""All measurements of one run, shared by metrics, figures and report."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path

import numpy as np
from capture_analysis import ack_compression
from capture_analysis.ack_compression import AckTimes
from capture_analysis.columns import UDP, BoolArray, IntArray, Packets, merge
from capture_analysis.congestion_epochs import CongestionEpochs, congestion_epochs
from capture_analysis.errors import AnalysisError
from capture_analysis.one_capture.memory import give_back

from twoway.contract.links import Delay
from twoway.contract.links.impairments import Impairments
from twoway.contract.links.medium import Medium
from twoway.contract.links.rate import Rate
from twoway.contract.network import START_NS, Connection, ProgramRun, Queue
from twoway.contract.timetable import Timetable
from twoway.measure import channel, throughput
from twoway.measure.busy_periods import BusyPeriods, busy_periods
from twoway.measure.datagrams import DatagramView, join
from twoway.measure.lanes import Lanes, lanes_of
from twoway.measure.medium import Holds, latest_ns, medium_of, replay
from twoway.measure.queues import (
    STILL_QUEUED,
    Occupancy,
    Passage,
    lingering,
    merged,
    occupancy,
    passage,
    service_error_ns,
    times_after,
    transmitted,
)
from twoway.measure.round_trips import RoundTrips, round_trips
from twoway.measure.run_folder import Run
from twoway.measure.seconds import Seconds, by_second


@dataclass(frozen=True)
class QueueView:
    """A bottleneck queue and the packets that passed it.

    Attributes:
        queue: the queue as the manifest describes it.
        passed: every packet offered, with the end of its transmission.
        all_packets: the queue's length over time.
        kernel_least: lower bound of the kernel's count: without the packet in transmission, if the
            queue releases it when its transmission starts.
        kernel_most: upper bound of the kernel's count: with packets that a managed queue holds and
            will drop. Both bounds equal `all_packets` for a drop-tail queue.
        data_packets: the queue's length over time, data packets alone.
        slots: a DTM channel's slots; None for other queues.
        table: the table of its changing rate; None for other queues.
        holds: the times at which its packets had the medium of a half-duplex link; None for other
            queues.
        late_ns: a function that computes the lateness of each departure.
    """

    queue: Queue
    passed: Passage
    all_packets: Occupancy
    kernel_least: Occupancy
    kernel_most: Occupancy
    data_packets: Occupancy
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

    @property
    def error_ns(self) -> IntArray:
        """Shape (m,), lateness of each departure, computed at each reading."""
        return self.late_ns()

    @cached_property
    def lanes(self) -> Lanes:
        """The rows of `passed` by lane."""
        return Lanes(lanes_of(self.passed.packets))


@dataclass(frozen=True)
class Departed:
    """Packets that left a queue in the steady window, in the order they left.

    Attributes:
        left_ns: shape (n,), when.
        is_data: shape (n,), True if the packet carries payload.
        lanes: their rows by lane.
    """

    left_ns: IntArray
    is_data: BoolArray
    lanes: Lanes


@dataclass(frozen=True)
class ConnectionView:
    """One connection: data and ACKs at both ends, data in the queue.

    Large columns are selected from the captures on each use.

    Attributes:
        connection: the connection.
        forward: the slowest queue of its data.
        reverse: the slowest queue of its ACKs.
        last_reverse: the last queue of its ACKs, whose rate limits how close they arrive.
        run: the run.
    """

    connection: Connection
    forward: QueueView
    reverse: QueueView
    last_reverse: QueueView
    run: Run = field(repr=False)

    @property
    def sent(self) -> Packets:
        """The packets of the data's sender, in the capture at the sender."""
        return self.run.between(self.connection.source_interface, self.connection, forward=True)

    @property
    def arrived(self) -> Packets:
        """The packets of the data's sender that reached its sink, in the sink's capture."""
        return self.run.between(self.connection.sink_interface, self.connection, forward=True)

    @property
    def acks_in(self) -> Packets:
        """The packets of the sink that reached the data's sender, in the sender's capture."""
        return self.run.between(self.connection.source_interface, self.connection, forward=False)

    @property
    def acks_out(self) -> Packets:
        """The packets of the sink, in the sink's capture."""
        return self.run.between(self.connection.sink_interface, self.connection, forward=False)

    @property
    def acks(self) -> AckTimes:
        """The ACKs of the steady window at both ends."""
        return self._matched[0]

    @property
    def acks_lost(self) -> int:
        """Number of ACKs of the steady window that never arrived."""
        return self._matched[1]

    @property
    def acks_sent(self) -> int:
        """Number of ACKs sent in the steady window."""
        return len(self.acks.sent_ns) + self.acks_lost

    @cached_property
    def _matched(self) -> tuple[AckTimes, int]:
        return ack_compression.match_acks(self.run.steady(self.acks_out), self.acks_in)

    @cached_property
    def round_trips(self) -> RoundTrips:
        """The round trips of its data."""
        return round_trips(self.sent.data(), self.acks_in)

    @property
    def queued(self) -> Occupancy:
        """The connection's data in the bottleneck's queue over time."""
        passed = self.forward.passed
        rows = self.run.rows(self.forward.lanes, self.connection, forward=True)
        return occupancy(passed, rows[passed.is_data[rows]])

    @cached_property
    def window(self) -> Occupancy:
        """The connection's flight over time, in full segments."""
        data, acks = self.sent.data(), self.acks_in
        if not len(data) or not len(acks):
            return Occupancy(data.time_ns[:0], data.time_ns[:0])
        origin, segment = int(data.seq[0]), int(data.payload_bytes.max())
        sent = np.maximum.accumulate((data.seq - origin) % (1 << 32) + data.payload_bytes)
        # The ACK of the handshake acknowledges the byte before the first.
        ahead = (acks.ack - origin) % (1 << 32)
        acked = np.maximum.accumulate(np.where(ahead > 1 << 31, 0, ahead))
        time_ns = merged(data.time_ns, acks.time_ns)
        newest = np.concatenate(([0], sent))[np.searchsorted(data.time_ns, time_ns, side="right")]
        oldest = np.concatenate(([0], acked))[np.searchsorted(acks.time_ns, time_ns, side="right")]
        return Occupancy(time_ns, (-(-(newest - oldest) // segment)).astype(np.int32))

    @cached_property
    def segment_frame_bytes(self) -> int:
        """Captured size of the largest data segment; 0 if none arrived."""
        return int(self.arrived.data().frame_bytes.max(initial=0))

    @cached_property
    def ack_frame_bytes(self) -> int:
        """Captured size of the smallest ACK: ACKs with SACK are larger."""
        return int(self.acks.frame_bytes.min()) if len(self.acks.frame_bytes) else 0

    @property
    def has_one_rate(self) -> bool:
        """True if the rates for data and for arriving ACKs are constant.

        Compression has a bound only then.
        """
        return self.forward.has_one_rate and self.last_reverse.has_one_rate

    @property
    def data_service_ns(self) -> int:
        """Transmission time of a full segment on its bottleneck; 0 if none was sent."""
        size = self.segment_frame_bytes
        return int(self.forward.queue.service_ns(size)) if size else 0

    @property
    def ack_service_ns(self) -> int:
        """Transmission time of an ACK on the last link before the data's sender, 0 if none."""
        size = self.ack_frame_bytes
        return int(self.last_reverse.queue.service_ns(size)) if size else 0


@dataclass(frozen=True)
class Travel:
    """Packets of a connection from a queue to the end of their path.

    Attributes:
        queue: the last queue on the path.
        sent: shape (n,), the packets as they left the queue.
        came_ns: shape (n,), arrival of each packet's first copy; -1 if it never arrived.
        arrivals: number of all packets that arrived.
        under_way: shape (n,), True if the packet may still have been on its path when the captures
            ended.
    """

    queue: Queue
    sent: Packets
    came_ns: IntArray
    arrivals: int
    under_way: BoolArray

    @property
    def lost(self) -> BoolArray:
        """Mark the packets that the link lost; shape (n,)."""
        return (self.came_ns < 0) & ~self.under_way


class Analysis:
    """The measurements of one run, each computed when it is first used.

    Args:
        folder: a run's folder.

    Raises: AnalysisError if the folder or its captures cannot be used.
    """

    def __init__(self, folder: Path) -> None:
        self.run = Run(folder)
        self._departed: dict[str, Departed] = {}
        self._drops: dict[str, Packets] = {}

    @cached_property
    def queues(self) -> dict[str, QueueView]:
        """Queues by direction."""
        medium = medium_of(self.run)
        seen = {q.direction: self._passage(q, medium) for q in self.run.queues}
        holds = replay(self.run, medium, seen) if medium else {}
        found = {
            q.direction: self._queue(q, seen.pop(q.direction), holds.get(q.direction))
            for q in self.run.queues
        }
        if not self.run.follows_packets:
            for interface in self.run.manifest.interfaces:
                if interface.node in self.run.manifest.nodes.routers:
                    self.run.release(interface.name)
        give_back()
        return found

    @cached_property
    def connections(self) -> dict[str, ConnectionView]:
        """Connections by name."""
        return {c.name: self._connection(c) for c in self.run.connections}

    @property
    def senders(self) -> list[ProgramRun]:
        """The programs that name the UDP port that they send from."""
        return [each for each in self.run.manifest.programs if each.udp_port]

    @cached_property
    def seconds(self) -> Seconds:
        """The goodputs of all connections in each second."""
        arrived = ((v.connection, v.arrived.data()) for v in self.connections.values())
        return by_second(self.run, arrived)

    @cached_property
    def datagrams(self) -> dict[str, DatagramView]:
        """UDP flows by name."""
        passed = [view.passed for view in self.queues.values()]
        queued = merge([each.packets.where(each.left_ns == STILL_QUEUED) for each in passed])
        return {
            flow.name: join(
                flow,
                self.run.of_datagrams(flow, flow.source_interface),
                self.run.of_datagrams(flow, flow.sink_interface),
                queued,
            )
            for flow in self.run.datagrams
        }

    @cached_property
    def queue_samples(self) -> dict[str, list[str]]:
        """Columns of the kernel's counts of packets in queues, times on the routers' clocks."""
        columns = ("interface", "time_ns", "read_ns", "packets")
        return self.run.table("sockets/queues.csv", *columns)

    @cached_property
    def socket_samples(self) -> dict[str, IntArray]:
        """Columns of the samples of TCP_INFO, times on the hosts' clocks."""
        columns = ("time_ns", "source_port", "cwnd", "ssthresh", "rtt_us")
        return self.run.numbers("sockets/tcp-info.csv", *columns)

    @cached_property
    def _samples_by_port(self) -> Lanes:
        return Lanes(self.socket_samples["source_port"].astype(np.uint32))

    def samples_of(self, connection: Connection) -> tuple[IntArray, dict[str, IntArray]]:
        """Select the samples of a connection's sender: times, and columns of TCP_INFO."""
        rows = self._samples_by_port.rows(connection.source_port)
        mine = {name: column[rows] for name, column in self.socket_samples.items()}
        return self.run.clock(connection.source_interface).of_programs(mine["time_ns"]), mine

    def departed(self, view: QueueView) -> Departed:
        """List the packets that left a queue in the steady window."""
        found = self._departed.get(view.queue.direction)
        if found is None:
            passed, rows = view.passed, view.passed.departures
            left_ns = passed.left_ns[rows]
            rows = rows[(left_ns >= self.run.steady_ns) & (left_ns < self.run.stop_ns)]
            lanes = Lanes(lanes_of(passed.packets)[rows])
            found = Departed(passed.left_ns[rows], passed.is_data[rows], lanes)
            self._departed[view.queue.direction] = found
        return found

    def busy(self, view: QueueView) -> BusyPeriods:
        """Find a queue's busy periods in the steady window."""
        return busy_periods(view.passed, self.run.steady_ns, self.run.stop_ns)

    def _table(self, queue: Queue) -> Timetable | None:
        rate = self.run.element(queue, Rate)
        return rate.table if rate else None

    def _passage(self, queue: Queue, medium: Medium | None) -> Passage:
        run = self.run
        captures = run.entering(queue), run.leaving(queue)
        table = self._table(queue)
        ends = partial(table.leaves, START_NS) if table else None
        if medium:
            ends = partial(latest_ns, run, queue, medium)
        try:
            return passage(queue, *captures, run.last_seen_ns, ends)
        except AnalysisError as error:
            if lost := run.manifest.lost_by_captures:
                raise AnalysisError(f"{error}; captures lost packets: {lost}") from error
            raise

    def _queue(self, queue: Queue, seen: Passage, holds: Holds | None) -> QueueView:
        run = self.run
        table = self._table(queue)
        passed = transmitted(queue, seen)
        slots = channel.read_slots(run, queue) if queue.reallocations else None
        if slots:
            late_ns = partial(channel.service_error_ns, queue, slots, passed)
        elif holds:
            late_ns = partial(holds.error_ns, passed)
        else:
            ends = partial(table.leaves, START_NS) if table else None
            late_ns = partial(service_error_ns, queue, passed, ends)
        all_packets = occupancy(passed)
        return QueueView(
            queue=queue,
            passed=passed,
            all_packets=all_packets,
            kernel_least=occupancy(seen) if queue.leaves_at_start else all_packets,
            kernel_most=occupancy(lingering(queue, seen)) if queue.leaves_at_start else all_packets,
            data_packets=occupancy(passed, passed.is_data),
            slots=slots,
            table=table,
            holds=holds,
            late_ns=late_ns,
        )

    def _connection(self, connection: Connection) -> ConnectionView:
        run = self.run
        for direction in (connection.direction, connection.ack_direction):
            if direction not in self.queues:
                raise AnalysisError(f'{connection.name}: no queue has direction "{direction}"')
        return ConnectionView(
            connection=connection,
            forward=self.queues[connection.direction],
            reverse=self.queues[connection.ack_direction],
            last_reverse=self.queues[connection.ack_directions[-1]],
            run=run,
        )

    def goodput_bit(self, view: ConnectionView) -> float:
        """Compute a connection's goodput in the steady window, bit/s."""
        run = self.run
        payload = throughput.new_payload_bytes(view.arrived, run.steady_ns, run.stop_ns)
        return payload * 8 * 1e9 / run.window_ns

    def sent_bit(self, program: ProgramRun) -> float:
        """Compute the payload that arrives from a program's UDP port, in the steady window, bit/s.

        A datagram arrives once: what QUIC sends again is another datagram. Its headers count.
        """
        run, payload = self.run, 0
        hosts = [i for i in run.manifest.interfaces if i.node in run.manifest.nodes.hosts]
        own = [
            (a, program.udp_port)
            for i in hosts
            if i.node == program.host
            for a in (i.address, i.address6)
        ]
        lanes = [
            2 * flow + half
            for flow in range(len(run.flows))
            if run.flows.rows["protocol"][flow] == UDP
            for half, end in enumerate((run.flows.source(flow), run.flows.destination(flow)))
            if end in own
        ]
        for there in hosts:
            if there.node != program.host and there.name in run.manifest.captures:
                packets = run.capture(there.name)
                mine = packets.where(np.isin(lanes_of(packets), lanes)).widened()
                payload += int(run.steady(mine).payload_bytes.sum())
        return payload * 8e9 / run.window_ns

    def lost(self, view: ConnectionView) -> Packets:
        """List a connection's data packets that queues dropped (see `drops`)."""
        drops, lanes = self._all_drops
        return drops.where(self.run.rows(lanes, view.connection, forward=True)).data()

    @cached_property
    def _all_drops(self) -> tuple[Packets, Lanes]:
        drops = merge([self.drops(queue) for queue in self.queues.values()])
        return drops, Lanes(lanes_of(drops))

    def keeps_spacing(self, connection: Connection) -> bool:
        """Tell whether ACKs keep the spacing with which they leave their queues."""
        links = [self.run.link(self.queues[name].queue) for name in connection.ack_directions]
        return not any(link and link.elements.has(Delay, Impairments) for link in links)

    def travel(self, connection: Connection, *, forward: bool = True) -> Travel:
        """Follow a connection's packets from its last queue to their end.

        Args:
            connection: the connection.
            forward: True for the path of its data packets; False for that of its ACKs.
        """
        names = connection.directions if forward else connection.ack_directions
        end = connection.sink_interface if forward else connection.source_interface
        queue = self.queues[names[-1]].queue
        sent = self.run.between(queue.interface, connection, forward=forward)
        came = self.run.between(end, connection, forward=forward)
        came_ns = times_after(sent, came)
        under_way = (came_ns < 0) & (sent.time_ns + queue.delay_ns >= self.run.last_seen_ns)
        return Travel(queue, sent, came_ns, len(came), under_way)

    @cached_property
    def congestion_epochs(self) -> CongestionEpochs:
        """The congestion epochs of the steady window: clusters of data drops.

        Two epochs are separated by at least the longest round trip.
        """
        run = self.run
        lost_ns = [self.lost(view).time_ns for view in self.connections.values()]
        victim = np.repeat(np.arange(len(lost_ns)), [len(each) for each in lost_ns])
        time_ns = np.concatenate([*lost_ns, np.zeros(0, dtype=np.int64)])
        order = np.argsort(time_ns, kind="stable")
        found = congestion_epochs(time_ns[order], victim[order], self.longest_round_trip_ns)
        return found.within(run.steady_ns, run.stop_ns)

    @cached_property
    def longest_round_trip_ns(self) -> int:
        """Round-trip time with all queues full of their largest frames, ns."""
        return sum(
            view.queue.delay_ns + view.queue.limit_packets * self._longest_service_ns(view)
            for view in self.queues.values()
        )

    def _longest_service_ns(self, view: QueueView) -> int:
        """Compute the time of a queue's largest frame; in half duplex with one of the other end."""
        largest = int(view.passed.packets.frame_bytes.max(initial=0))
        medium = medium_of(self.run)
        if medium is None:
            return int(view.queue.service_ns(largest))
        size = view.queue.link_bytes(np.array([largest]))
        one = replace(medium, turn_packets=1)
        return int(latest_ns(self.run, view.queue, one, np.zeros(1, dtype=np.int64), size)[0])

    def queue_epochs(self, view: QueueView, gap_ns: int) -> CongestionEpochs:
        """Find the clusters of one queue's drops that start in the steady window.

        Args:
            view: the queue.
            gap_ns: the least time between two clusters.

        Returns: clusters of data and ACKs, without victims.
        """
        time_ns = self.drops(view).time_ns
        no_victim = np.zeros(len(time_ns), dtype=np.int64)
        found = congestion_epochs(time_ns, no_victim, gap_ns)
        return found.within(self.run.steady_ns, self.run.stop_ns)

    def drops(self, view: QueueView) -> Packets:
        """List a queue's drops from start of capture to end of traffic."""
        direction = view.queue.direction
        if direction not in self._drops:
            packets = view.passed.packets.where(view.passed.dropped).widened()
            self._drops[direction] = packets.where(packets.time_ns < self.run.stop_ns)
        return self._drops[direction]
