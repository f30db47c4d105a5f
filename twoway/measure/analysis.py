"""All measurements of one run, shared by metrics, figures and report."""

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from pathlib import Path

import numpy as np
from capture_analysis.columns import IntArray, Packets, merge
from capture_analysis.congestion_epochs import CongestionEpochs, congestion_epochs
from capture_analysis.errors import AnalysisError
from capture_analysis.flow_table import UDP
from capture_analysis.one_capture.memory import give_back
from capture_analysis.step_functions import LastToEmpty, last_to_empty
from numpy.typing import NDArray

from twoway.contract.model import LATEST_NS
from twoway.contract.network import START_NS, Connection, ProgramRun, Queue
from twoway.links.mtu import Mtu
from twoway.measure import channel
from twoway.measure.busy_periods import BusyPeriods, busy_periods
from twoway.measure.connection_view import ConnectionView
from twoway.measure.datagrams import DatagramView, join
from twoway.measure.lanes import Lanes, numbers_of
from twoway.measure.medium import Holds, latest_ns, medium_of, replay
from twoway.measure.queue_view import QueueView
from twoway.measure.queues import (
    Passage,
    end_transmissions,
    kernel_counts,
    occupancy,
    passage,
    service_error_ns,
    still_queued,
)
from twoway.measure.routers_own import in_order, made_by_router, mark_arrivals
from twoway.measure.run_folder import WHEN, Run
from twoway.measure.shares_by_second import Seconds, by_second
from twoway.measure.travel import Hop, Travel, Travels, follow


@dataclass(frozen=True)
class Departed:
    """Packets that left a queue in the steady window, in the order they left.

    Attributes:
        rows: shape (n,), their rows in the queue's passage.
        lanes: the places in `rows` of each lane.
    """

    rows: NDArray[np.uint32]
    lanes: Lanes


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
        self._goodputs: dict[str, float] = {}
        # By direction, what a router's commands or an MTU change before the queue.
        self.made: dict[str, Packets] = {}
        self.stopped: dict[str, int] = {}
        # Metrics are computed queue by queue; a length takes more memory than the queue's packets.
        self._length = lru_cache(maxsize=1)(occupancy)

    @cached_property
    def queues(self) -> dict[str, QueueView]:
        """Queues by direction."""
        run, passed = self.run, {}
        waiting = Counter(name for queue in run.queues for name in _captures_of(queue))
        for queue in run.queues:
            passed[queue.direction] = self._passage(queue)
            for name in _captures_of(queue):
                waiting[name] -= 1
                if not waiting[name]:
                    run.release(name)
        medium = medium_of(run)
        seen = {q.direction: self._decided(q, passed.pop(q.direction)) for q in run.queues}
        holds = replay(run, medium, seen) if medium else {}
        found = {
            q.direction: self._queue(q, seen.pop(q.direction), holds.get(q.direction))
            for q in run.queues
        }
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
        views = self.connections.values()
        return by_second(self.run, ((v.connection, v.segments_in, v.brought) for v in views))

    @cached_property
    def unfinished(self) -> Packets:
        """The packets that were in a queue, or on the link behind it, as the captures ended."""
        until_ns = self.run.last_seen_ns
        return merge(
            [
                view.passed.packets.where(view.passed.left_ns >= until_ns - view.queue.delay_ns)
                for view in self.queues.values()
            ]
        )

    @cached_property
    def datagrams(self) -> dict[str, DatagramView]:
        """UDP flows by name."""
        return {
            flow.name: join(
                flow,
                self.run.of_datagrams(flow, flow.source_interface),
                self.run.of_datagrams(flow, flow.sink_interface),
                self.unfinished,
            )
            for flow in self.run.datagrams
        }

    @cached_property
    def queue_samples(self) -> dict[str, IntArray]:
        """Columns of the kernel's counts of packets in queues, times on the routers' clocks.

        The column `interface` has the queue's place in the run's queues; -1 for other interfaces.
        """
        columns = ("interface", "time_ns", "read_ns", "packets")
        words = {"interface": [queue.interface for queue in self.run.queues]}
        return self.run.numbers("sockets/queues.csv", *columns, words=words)

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
        remembered = self.run.values_of(connection)
        if "samples" not in remembered:
            rows = self._samples_by_port.rows(connection.source_port)
            mine = {name: column[rows] for name, column in self.socket_samples.items()}
            times = self.run.clock(connection.source_interface).of_programs(mine["time_ns"])
            remembered["samples"] = times, mine
        found: tuple[IntArray, dict[str, IntArray]] = remembered["samples"]
        return found

    def list_departed(self, view: QueueView) -> Departed:
        """List the packets that left a queue in the steady window."""
        found = self._departed.get(view.queue.direction)
        if found is None:
            passed, rows = view.passed, view.passed.departures
            ends = np.searchsorted(passed.left_ns[rows], (self.run.steady_ns, self.run.stop_ns))
            rows = rows[slice(*ends)]
            found = Departed(rows, Lanes(numbers_of(passed.packets)[rows]))
            self._departed[view.queue.direction] = found
        return found

    def busy(self, view: QueueView) -> BusyPeriods:
        """Find a queue's busy periods in the steady window."""
        return busy_periods(view.passed, self.run.steady_ns, self.run.stop_ns)

    @cached_property
    def last_to_empty(self) -> LastToEmpty:
        """The queue that would run empty last, at all times of the steady window."""
        passed = [view.passed for view in self.queues.values()]
        queues = [(each.packets.time_ns, each.left_ns) for each in passed]
        return last_to_empty(queues, self.run.steady_ns, self.run.stop_ns)

    def may_change(self, queue: Queue) -> bool:
        """Tell whether a queue's router may drop, make or cut packets before the queue."""
        return queue.node in self.run.set_up or bool(self.run.element(queue, Mtu))

    def cuts(self, queue: Queue) -> bool:
        """Tell whether a queue's router made other packets of some that came, such as fragments."""
        made = self.made.get(queue.direction, ())
        return bool(len(made) and self.stopped.get(queue.direction))

    def _passage(self, queue: Queue) -> Passage:
        run, entering, leaving = (
            self.run,
            self.run.packets_entering(queue),
            self.run.packets_leaving(queue),
        )
        if self.may_change(queue):
            made = made_by_router(queue, entering, leaving)
            if len(made) and (seen := in_order(queue, entering, leaving)):
                self.stopped[queue.direction] = len(entering) - len(seen.packets)
                return seen
            self.made[queue.direction] = made
            entering = merge([entering, made]) if len(made) else entering
        try:
            return passage(queue, entering, leaving)
        except AnalysisError as error:
            if lost := run.manifest.lost_by_captures:
                raise AnalysisError(f"{error}; captures lost packets: {lost}") from error
            raise

    def _decided(self, queue: Queue, seen: Passage) -> Passage:
        elements, packets = self.run.elements(queue), seen.packets
        refused = partial(elements.refuse, packets.time_ns, packets.frame_bytes)
        decided = still_queued(queue, seen, partial(self._kernel_queued, queue, seen), refused)
        made = self.made.get(queue.direction)
        if made is None:
            return decided
        drops = self.run.counted_drops(queue, "root")
        here = mark_arrivals(queue, decided, refused(), made, drops)
        self.stopped[queue.direction] = int((~here).sum())
        return decided if here.all() else decided.where(np.flatnonzero(here))

    def _kernel_queued(self, queue: Queue, seen: Passage) -> int:
        """Count the packets in a queue at the captures' end, by the kernel's counters.

        The last packets that left may be missing in a capture by tcpdump: they count, too.
        """
        before, after = (self.run.root_qdisc(queue.interface, when) for when in WHEN)
        unseen = after.packets - before.packets - int((seen.left_ns >= 0).sum())
        return after.qlen + max(unseen, 0)

    def _queue(self, queue: Queue, seen: Passage, holds: Holds | None) -> QueueView:
        run = self.run
        table = run.elements(queue).table
        ends = partial(table.leaves, START_NS) if table else None
        passed = end_transmissions(queue, seen, ends)
        slots = channel.read_slots(run, queue) if queue.reallocations else None
        if slots:
            late_ns = partial(channel.service_error_ns, queue, slots, passed)
        elif holds:
            late_ns = partial(holds.error_ns, passed)
        else:
            late_ns = partial(service_error_ns, queue, passed, ends)
        length = partial(self._length, passed)
        return QueueView(
            queue=queue,
            passed=passed,
            length=length,
            kernel=partial(kernel_counts, queue, seen, length),
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
        """Compute a connection's goodput over its sending time in the steady window, bit/s."""
        name = view.connection.name
        if name not in self._goodputs:
            self._goodputs[name] = view.rate_bit(view.segments_in.time_ns, view.brought)
        return self._goodputs[name]

    def sent_bit(self, program: ProgramRun) -> float:
        """Compute the rate of the payload from a program's UDP port, in the steady window, bit/s.

        A datagram arrives once: what QUIC sends again is another datagram. Its headers count. The
        program's own time in the window counts.

        Returns: NaN if it did not run in the steady window.
        """
        run, payload = self.run, 0
        lasts_ns = min(program.end_ns, run.stop_ns) - max(program.start_ns, run.steady_ns)
        if lasts_ns <= 0:
            return math.nan
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
                mine = run.select_steady(run.of_directions(there.name, *lanes))
                payload += int(mine.payload_bytes.sum())
        return payload * 8e9 / lasts_ns

    def list_lost(self, view: ConnectionView) -> Packets:
        """List a connection's data packets that queues dropped (see `drops`)."""
        remembered = self.run.values_of(view.connection)
        if "lost" not in remembered:
            drops, lanes = self._all_drops
            rows = self.run.rows(lanes, view.connection, forward=True)
            remembered["lost"] = drops.compute_later(lambda column: column[rows]).data()
        found: Packets = remembered["lost"]
        return found

    def data_rows(self, packets: Packets, view: ConnectionView) -> IntArray:
        """List the rows of a connection's data among packets of any place."""
        rows = self.run.rows(Lanes(numbers_of(packets)), view.connection, forward=True)
        return np.asarray(rows[packets.payload_bytes[rows] > 0])

    @cached_property
    def _all_drops(self) -> tuple[Packets, Lanes]:
        drops = merge([self.drops(queue) for queue in self.queues.values()])
        return drops, Lanes(numbers_of(drops))

    def keeps_spacing(self, connection: Connection) -> bool:
        """Tell whether ACKs keep the spacing with which they leave their queues."""
        queues = (self.queues[name].queue for name in connection.ack_directions)
        return all(self.run.elements(queue).keep_spacing for queue in queues)

    @cached_property
    def travels(self) -> Travels:
        """The packets of the run between the places at which they are captured."""
        return Travels(self.run, self.queues)

    def follow_behind(self, queue: Queue) -> Iterator[tuple[Hop, Travel]]:
        """Follow all packets behind a queue, if it is their last, to the host that they are for."""
        for hop in self.travels.hops_behind(queue):
            yield hop, self.travels.follow_hop(hop)

    def travel(self, connection: Connection) -> Travel:
        """Follow a connection's data packets from its last queue to their sink."""
        queue = self.queues[connection.directions[-1]].queue
        sent = self.run.packets_between(queue.interface, connection, forward=True)
        came = self.run.packets_between(connection.sink_interface, connection, forward=True)
        return follow(sent, came, self.run.last_seen_ns - queue.delay_ns)

    @cached_property
    def congestion_epochs(self) -> CongestionEpochs:
        """The congestion epochs of the steady window: clusters of data drops.

        Two epochs are separated by at least the longest round trip.
        """
        run = self.run
        lost_ns = [self.list_lost(view).time_ns for view in self.connections.values()]
        victim = np.repeat(np.arange(len(lost_ns)), [len(each) for each in lost_ns])
        time_ns = np.concatenate([*lost_ns, np.zeros(0, dtype=np.int64)])
        order = np.argsort(time_ns, kind="stable")
        found = congestion_epochs(time_ns[order], victim[order], self.longest_round_trip_ns)
        return found.select_window(run.steady_ns, run.stop_ns)

    @cached_property
    def longest_round_trip_ns(self) -> int:
        """Round-trip time with all queues full of their largest frames, ns."""
        trips_ns = (
            view.queue.delay_ns + view.queue.limit_packets * self._longest_service_ns(view)
            for view in self.queues.values()
        )
        return min(sum(trips_ns), LATEST_NS)  # 64 bits hold it

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
        return found.select_window(self.run.steady_ns, self.run.stop_ns)

    def drops(self, view: QueueView) -> Packets:
        """List a queue's drops from start of capture to end of traffic."""
        direction = view.queue.direction
        if direction not in self._drops:
            packets = view.passed.packets.where(view.passed.dropped).widen()
            self._drops[direction] = packets.where(packets.time_ns < self.run.stop_ns)
        return self._drops[direction]


def _captures_of(queue: Queue) -> Iterator[str]:
    """List the interfaces whose captures a queue is reconstructed from."""
    yield from queue.taps_in
    yield queue.interface
