"""Reading a run's folder: manifest.json, and the files it names.

These files never change once the run has finished. If the experiment's file changes later in its
texts, statements or warm-up, experiment.json in the run's folder holds the changed experiment.
"""

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

import numpy as np
from capture_analysis.columns import BoolArray, IntArray, Keyed, Packets, merge
from capture_analysis.common_flows import CommonFlows
from capture_analysis.errors import AnalysisError
from capture_analysis.flow_table import TCP, UDP, FlowTable
from capture_analysis.one_capture.memory import give_back
from capture_analysis.reading.capture import MOST_CONNECTIONS, read_capture

from twoway.contract.files import open_run_file
from twoway.contract.guest_files import Qdisc, read_document, read_netstat
from twoway.contract.network import CHANGE_NS, Connection, DatagramFlow, Queue, netstat_file
from twoway.contract.routing import Routes
from twoway.links.element import Elements
from twoway.manifest import Manifest, captures_left_out, read_manifest, without_captures
from twoway.measure.clocks import Clock, read_clock
from twoway.measure.lanes import Lanes, PacketFile, numbers_of
from twoway.measure.nat_translation import join_connections, without_checksums
from twoway.measure.tables import read_numbers

_Kind = TypeVar("_Kind")

# Columns that metrics do not use, except in keys; and those that they do not use at routers.
_LEFT_OUT = (
    *("ts_value", "ts_echo", "sack_left", "sack_right", "window", "ip_id"),
    *("frame", "interface", "marks"),
)
_LEFT_OUT_AT_ROUTERS = ("ack", "flags")
# Counters are saved before and after the traffic.
WHEN = ("before", "after")


def manifest_of(folder: Path) -> Manifest:
    """Read a run's manifest.json, updated with experiment.json if any.

    Raises: AnalysisError if the folder has no manifest, or a document is invalid.
    """
    try:
        return read_manifest(folder)
    except ValueError as error:
        raise AnalysisError(str(error)) from error


class Run:
    """A finished run's folder.

    Raises: AnalysisError if the folder holds no manifest, or if a file that it names is missing or
            has changed.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.manifest = manifest_of(folder)
        if damaged := self.manifest.list_damaged(folder):
            raise AnalysisError(f"{folder}: missing or changed since the run: {', '.join(damaged)}")
        self.queues = self.manifest.queues
        self.connections = self.manifest.connections
        self.datagrams = self.manifest.datagrams
        self.start_ns = self.manifest.clock.start_ns
        self.steady_ns = self.manifest.clock.steady_ns
        self.stop_ns = self.manifest.clock.stop_ns
        self._clocks = {
            interface.name: read_clock(self.manifest, interface.node)
            for interface in self.manifest.interfaces
        }
        routers = self.manifest.nodes.routers
        self._at_routers = {i.name for i in self.manifest.interfaces if i.node in routers}
        # Nodes that commands of the experiment's file set up.
        self.set_up = {
            node for each in self.manifest.settings if each.name == "setup" for node in each.nodes
        }
        # True if a router may change packets: NAT, tunnels, filters.
        self.routers_set_up = not self.set_up.isdisjoint(routers)
        self._unread = list(self.manifest.captures)
        self._captures: dict[str, Packets] = {}
        self._at_hosts = PacketFile()
        self._common = CommonFlows()
        self._joined: FlowTable | None = None
        # The address to which each lane's packets go.
        self._goals: list[str] = []
        self._routes: dict[tuple[str, int], Routes] = {}
        self._numbers: dict[str, tuple[IntArray, IntArray]] = {}
        self._last_seen_ns = self._largest_bytes = self._connections_read = 0
        self._lanes: dict[str, Lanes] = {}
        self._halves: dict[tuple[str, bool], list[int]] = {}
        self._remembered: tuple[str, dict[Any, Any]] = "", {}
        self._whole: dict[str, Packets] = {}
        self._counters: dict[str, dict[str, int]] = {}
        self._qdiscs: dict[str, list[Qdisc]] = {}

    @property
    def exact_clock(self) -> bool:
        """True if the run was in virtual time."""
        return self.manifest.clock_source == "virtual"

    @cached_property
    def loses_on_links(self) -> bool:
        """True if a link loses packets behind its queue."""
        return any(d.elements.lose for d in self.manifest.profile.directions.values())

    @cached_property
    def follows_packets(self) -> bool:
        """True if a link has an element behind its queue."""
        return any(d.elements.act_behind for d in self.manifest.profile.directions.values())

    def elements(self, queue: Queue) -> Elements:
        """Return the elements of a queue's link; none if an older run does not record the link."""
        link = self.manifest.profile.directions.get(queue.link or queue.direction)
        return link.elements if link else Elements()

    def element(self, queue: Queue, kind: type[_Kind]) -> _Kind | None:
        """Return the element of a kind on a queue's link; None if there is none."""
        return self.elements(queue).find(kind)

    def clock(self, interface: str) -> Clock:
        """Return the clock of an interface's host.

        Raises: AnalysisError if the manifest has no such interface.
        """
        if interface not in self._clocks:
            raise AnalysisError(f"{self.folder}/manifest.json: interfaces: no {interface}")
        return self._clocks[interface]

    @property
    def clocks_differ_ns(self) -> int:
        """Bound of the difference between two hosts' times; 0 with one host."""
        off = sorted(clock.uncertainty_ns for clock in self._clocks.values())
        return sum(off[-2:])

    def seconds(self, time_ns: Any) -> Any:
        """Convert times, a number or an array, to s after the start of traffic."""
        return (time_ns - self.start_ns) / 1e9

    @property
    def window_ns(self) -> int:
        """Length of the steady window: from warm-up to the end of traffic."""
        return self.stop_ns - self.steady_ns

    def select_steady(self, packets: Packets) -> Packets:
        """Select the packets in the steady window."""
        inside = (packets.time_ns >= self.steady_ns) & (packets.time_ns < self.stop_ns)
        return packets.compute_later(lambda column: column[inside])

    def _read_next(self) -> None:
        """Read the next capture; flows are numbered in the manifest's order of captures.

        Behind NAT, flows are known when all captures are read.
        """
        names = self._unread[: None if self.routers_set_up else 1]
        read = {name: self._read(name) for name in names}
        if self.routers_set_up:
            self._join(read)
        for name, packets in read.items():
            if name in self._at_routers:
                self._captures[name] = packets
            else:
                self._at_hosts.add(name, packets)
        del self._unread[: len(names)]

    def _read(self, name: str) -> Packets:
        at_router = name in self._at_routers
        left_out = _LEFT_OUT + _LEFT_OUT_AT_ROUTERS * at_router

        def keyed(packets: Packets) -> Packets:
            kept = without_checksums(packets) if self.routers_set_up else packets
            return Keyed.from_packets(kept, left_out)

        packets, table = read_capture(self.capture_file(name), every_protocol=True, change=keyed)
        self._connections_read += len(table)
        if self._connections_read > MOST_CONNECTIONS:
            raise AnalysisError(
                f"{self.folder}: more than {MOST_CONNECTIONS} connections in all captures together"
            )
        self._numbers[name] = self._common.add(table)
        packets = self._in_common(name, packets)
        self._last_seen_ns = max(self._last_seen_ns, int(packets.time_ns.max(initial=0)))
        self._largest_bytes = max(self._largest_bytes, int(packets.frame_bytes.max(initial=0)))
        return packets

    def _join(self, read: dict[str, Packets]) -> None:
        """Give each connection that NAT changes one number, in all captures."""
        hosts = [address for address, _ in self._host_addresses]
        captures = list(read.values())
        directions = map(numbers_of, captures)
        number, turned, self._joined = join_connections(
            captures, directions, self._common.table, hosts
        )
        for name, packets in read.items():
            flow, exchanged = self._numbers[name]
            self._numbers[name] = number[flow], exchanged ^ turned[flow]
            read[name] = packets.renumber(number, turned)

    @property
    def _host_addresses(self) -> Iterator[tuple[str, str]]:
        """The addresses of hosts, with their captured interfaces."""
        for each in self.manifest.interfaces:
            if each.node in self.manifest.nodes.hosts and each.name in self.manifest.captures:
                yield from ((a, each.name) for a in (each.address, each.address6) if a)

    def whole_capture(self, interface: str) -> Packets:
        """Read all packets captured on an interface once more, with all columns."""
        if interface not in self._whole:  # the last one is kept
            _ = self.flows
            packets, _ = read_capture(self.capture_file(interface), every_protocol=True)
            self._whole = {interface: self._in_common(interface, packets)}
        return self._whole[interface]

    def whole_connections(
        self, interface: str
    ) -> Iterator[tuple[tuple[str, int], tuple[str, int], Packets, Packets]]:
        """List each TCP connection's end that sends, its other end, and the packets of both.

        A connection comes twice if both ends send. Packets have all columns.
        """
        packets = self.whole_capture(interface)
        numbers = numbers_of(packets)
        for number in np.unique(numbers).tolist():
            flow, back = divmod(number, 2)
            ends = (self.flows.source(flow), self.flows.destination(flow))
            sent, came = (packets.where(numbers == n).widen() for n in (number, number ^ 1))
            if self.flows.rows["protocol"][flow] == TCP:
                yield ends[back], ends[1 - back], sent, came

    @cached_property
    def flows(self) -> FlowTable:
        """All connections of all captures; `Packets.flow` counts them."""
        while self._unread:
            self._read_next()
        return self._joined or self._common.table

    def capture_file(self, interface: str) -> Path:
        """Find an interface's capture file, compressed or plain.

        Raises: AnalysisError if the run has none, or its captures were left out.
        """
        self._refuse_left_out()
        plain = f"pcap/{interface}.pcap"
        for name in (f"{plain}.zst", plain):
            if name in self.manifest.files:
                return self.folder / name
        raise AnalysisError(f"{self.folder}/manifest.json: files: no {plain}.zst")

    def _refuse_left_out(self) -> None:
        if without_captures(self.folder):
            raise AnalysisError(captures_left_out(self.folder, self.manifest.experiment.id))

    def _in_common(self, interface: str, packets: Packets) -> Packets:
        """Convert packets to common flow numbers, and their times to the plan's clock."""
        time_ns = self.clock(interface).of_stamps(packets.time_ns)
        return replace(packets, time_ns=time_ns).renumber(*self._numbers[interface])

    def capture(self, interface: str) -> Packets:
        """Return all packets captured on a router's interface; `widened` makes them int64.

        Columns that metrics do not use are 0: see `whole_capture`.
        """
        while self._unread and interface not in self._captures:
            self._read_next()
        if interface not in self._captures:
            raise AnalysisError(f"{self.folder}/manifest.json: captures: no {interface}")
        return self._captures[interface]

    def release(self, interface: str) -> None:
        """Free the memory of a router's capture that no metric reads again."""
        if interface in self._at_routers and not self.follows_packets:
            self._captures.pop(interface)
            give_back()

    @property
    def last_seen_ns(self) -> int:
        """Time of the last packet in all captures."""
        _ = self.flows
        return self._last_seen_ns

    @property
    def largest_frame_bytes(self) -> int:
        """Size of the largest frame in all captures."""
        _ = self.flows
        return self._largest_bytes

    def packets_entering(self, queue: Queue) -> Packets:
        """Merge the packets that were offered to a queue, in time order."""
        return merge([self._passing(queue, interface) for interface in queue.taps_in])

    def packets_leaving(self, queue: Queue) -> Packets:
        """Return the packets that left a queue."""
        return self._passing(queue, queue.interface)

    def _passing(self, queue: Queue, interface: str) -> Packets:
        """Select the packets at a router's interface that leave at a queue's interface.

        The destination decides: an interface may be captured in both directions, and packets that
        come in there may leave elsewhere.
        """
        packets = self.capture(interface)
        if queue.ways_out is None:  # an older run, whose router had one interface for its packets
            if self.manifest.captures[interface] == "inout":
                raise AnalysisError(
                    f"{interface}: captured in both directions, by an older version"
                )
            return packets
        numbers = numbers_of(packets)
        routes = [queue.ways_out, *(change.routes for change in queue.rerouted)]
        here, *later = (
            self._leave_at(queue.interface, n, each)[numbers] for n, each in enumerate(routes)
        )
        if interface == queue.interface:  # what waited at a change leaves here after it
            here = np.logical_or.reduce([here, *later])
        elif later:
            # What left at another queue's interface at any time never comes in there.
            there = [self._leave_at(interface, n, each)[numbers] for n, each in enumerate(routes)]
            for change, then in zip(queue.rerouted, later, strict=True):
                since_ns = packets.time_ns - change.at_ns
                here = np.where(since_ns < 0, here, then)
                soon = (since_ns >= 0) & (since_ns < CHANGE_NS)
                here[soon] = np.isin(packets.where(soon).key(), self.packets_leaving(queue).key())
            here &= ~np.logical_or.reduce(there)
        return packets if here.all() else packets.where(here)

    def _leave_at(self, interface: str, change: int, given: Mapping[str, str]) -> BoolArray:
        """Mark the lanes whose packets leave at an interface after a change; shape (2 flows,)."""
        routes = self._routes.setdefault((interface, change), Routes(given))
        flows = self._common.table if self._unread else self.flows
        for n in range(len(self._goals) // 2, len(flows)):
            self._goals += (flows.destination(n)[0], flows.source(n)[0])
        out = {goal: routes.interface_to(goal) == interface for goal in set(self._goals)}
        return np.array([out[goal] for goal in self._goals], dtype=bool)

    @cached_property
    def ends_of_directions(self) -> dict[int, tuple[str, str]]:
        """The interfaces of the hosts that send and receive, by number of direction (`numbers_of`).

        Directions from or to a router are left out.
        """
        at = dict(self._host_addresses)
        ends = [
            (self.flows.source(n)[0], self.flows.destination(n)[0]) for n in range(len(self.flows))
        ]
        found = {}
        for flow, (one, other) in enumerate(ends):
            if {one, other} <= at.keys():
                found[2 * flow] = at[one], at[other]
                found[2 * flow + 1] = at[other], at[one]
        return found

    def packets_between(self, interface: str, connection: Connection, *, forward: bool) -> Packets:
        """Select a connection's packets, data or ACKs, at an interface."""
        remembered = self.values_of(connection)
        if (interface, forward) not in remembered:
            mine = self._directions_of(connection, forward=forward)
            remembered[interface, forward] = self.of_directions(interface, *mine)
        found: Packets = remembered[interface, forward]
        return found

    def values_of(self, connection: Connection) -> dict[Any, Any]:
        """Return what has been computed of a connection, until another connection is asked for.

        Metrics are computed connection by connection.
        """
        if self._remembered[0] != connection.name:
            self._remembered = connection.name, {}
        return self._remembered[1]

    def of_directions(self, interface: str, *directions: int) -> Packets:
        """Select the packets of some directions of connections at an interface, in time order.

        Args:
            interface: the interface.
            directions: numbers of directions, see `numbers_of`.

        Returns: the packets, their columns int64.
        """
        _ = self.flows
        if interface in self._at_hosts:
            return self._at_hosts.packets_of(interface, *directions)
        packets = self.capture(interface)
        if interface not in self._lanes:
            self._lanes[interface] = Lanes(numbers_of(packets))
        rows = self._lanes[interface].rows(*directions)
        return packets.compute_later(lambda column: column[rows].astype(np.int64))

    def rows(self, lanes: Lanes, connection: Connection, *, forward: bool) -> IntArray:
        """List the rows of a connection's packets, data or ACKs, ascending."""
        return lanes.rows(*self._directions_of(connection, forward=forward))

    def _directions_of(self, connection: Connection, *, forward: bool) -> list[int]:
        """Find the lanes of a connection's packets, data or ACKs."""
        known = (connection.name, forward)
        if known not in self._halves:
            source = (connection.source, connection.source_port)
            sink = (connection.destination, connection.port)
            ends = (source, sink) if forward else (sink, source)
            self._halves[known] = [2 * flow + half for flow, half in self.flows.find(*ends)]
        return self._halves[known]

    def of_datagrams(self, flow: DatagramFlow, interface: str) -> Packets:
        """Select a UDP flow's packets at an interface."""
        sender, receiver = (flow.source, flow.source_port), (flow.destination, flow.port)
        found = self.flows.find(sender, receiver, UDP)
        return self.of_directions(interface, *(2 * number + half for number, half in found))

    def document(self, name: str, kind: type[_Kind]) -> _Kind:
        """Read a JSON file that a guest wrote.

        Raises: AnalysisError if the file does not exist, is too large, or does not fit its kind.
        """
        try:
            return read_document(self.folder, name, kind)
        except (OSError, ValueError) as error:
            raise AnalysisError(f"{self.folder / name}: {error}") from error

    def counters(self, node: str) -> dict[str, int]:
        """Read a node's counters of TCP at the end by name; none in an older run.

        Raises: AnalysisError if the file has another form than /proc/net/netstat.
        """
        if node not in self._counters:
            name = netstat_file(node)
            try:
                there = name in self.manifest.files
                self._counters[node] = read_netstat(self.folder, name) if there else {}
            except (OSError, ValueError) as error:
                raise AnalysisError(f"{self.folder / name}: {error}") from error
        return self._counters[node]

    def qdiscs(self, node: str, when: str) -> list[Qdisc]:
        """Read the counters of a node's queueing disciplines, before or after the traffic."""
        name = f"qdisc/{node}-{when}.json"
        if name not in self._qdiscs:
            self._qdiscs[name] = self.document(name, list[Qdisc])
        return self._qdiscs[name]

    def root_qdisc(self, interface: str, when: str) -> Qdisc:
        """Read the counters of an interface's own queue, before or after the traffic.

        Raises: AnalysisError if the file has none.
        """
        node = interface.rsplit("-", 1)[0]
        for each in self.qdiscs(node, when):
            if each.dev == interface and each.root:
                return each
        raise AnalysisError(f"{self.folder}/qdisc/{node}-{when}.json: no queue of {interface}")

    def counted_drops(self, queue: Queue, which: str) -> int:
        """Read the kernel's count of drops by a queue ("root") or before it ("clsact")."""
        before, after = (
            sum(
                qdisc.drops
                for qdisc in self.qdiscs(queue.node, when)
                if qdisc.dev == queue.interface
                and (qdisc.root if which == "root" else qdisc.kind == which)
            )
            for when in WHEN
        )
        return after - before

    def numbers(
        self, name: str, *columns: str, words: Mapping[str, Sequence[str]] = MappingProxyType({})
    ) -> dict[str, IntArray]:
        """Read columns of whole numbers from a CSV table with a `# key: value` preamble.

        Args:
            name: a file in the folder.
            columns: the columns to read.
            words: the columns of them that have words, with the known words. Each row's word is
                read as its place among the known words, -1 for any other word.

        Raises: AnalysisError if a column is missing, a row has another length or no number there or
            at its end, a number is out of range, or there are too many rows.
        """
        if not (self.folder / name).exists():
            self._refuse_left_out()
        try:
            with open_run_file(self.folder, name) as file:
                return read_numbers(file, columns, words)
        except (OSError, ValueError, csv.Error) as error:
            raise AnalysisError(f"{self.folder / name}: {error}") from error
