"""Reading a run's folder: manifest.json, and the files it names.

These files never change once the run has finished. If the experiment's file changes later in its
texts, statements or warm-up, experiment.json in the run's folder holds the changed experiment.
"""

import csv
import io
from array import array
from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from capture_analysis.columns import UDP, BoolArray, FlowTable, IntArray, Packets, merge, unify
from capture_analysis.errors import AnalysisError
from capture_analysis.one_capture.memory import give_back
from capture_analysis.reading.capture import read_capture

from twoway.contract.files import open_run_file
from twoway.contract.link import Direction
from twoway.contract.links import BehindQueue, Delay
from twoway.contract.links.loss import Loss
from twoway.contract.manifest import (
    Manifest,
    captures_left_out,
    read_manifest,
    without_captures,
)
from twoway.contract.model import read_json
from twoway.contract.network import Connection, DatagramFlow, Queue
from twoway.contract.routing import Routes
from twoway.measure.clocks import Clock, read_clock
from twoway.measure.lanes import Lanes, lanes_of

_Kind = TypeVar("_Kind")


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

    Args:
        folder: the folder with manifest.json.

    Raises: AnalysisError if the folder holds no manifest, or if a file that it names is missing or
            has changed.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.manifest = manifest_of(folder)
        if damaged := self.manifest.damaged(folder):
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
        self._lanes: dict[str, Lanes] = {}
        self._halves: dict[tuple[str, bool], list[int]] = {}
        self._selected: dict[tuple[str, str, bool], Packets] = {}

    @property
    def exact_clock(self) -> bool:
        """True if the run was in virtual time."""
        return self.manifest.clock_source == "virtual"

    @property
    def loses_on_links(self) -> bool:
        """True if a link loses packets behind its queue."""
        return any(d.elements.has(Loss) for d in self.manifest.profile.directions.values())

    @property
    def follows_packets(self) -> bool:
        """True if a link has an element behind its queue."""
        directions = self.manifest.profile.directions.values()
        return any(d.elements.has(BehindQueue, Delay) for d in directions)

    def link(self, queue: Queue) -> Direction | None:
        """Return the profile's link of a queue; None if an older run does not record it."""
        return self.manifest.profile.directions.get(queue.link or queue.direction)

    def element(self, queue: Queue, kind: type[_Kind]) -> _Kind | None:
        """Return the element of a kind on a queue's link; None if there is none."""
        link = self.link(queue)
        return link.elements.find(kind) if link else None

    def clock(self, interface: str) -> Clock:
        """Return the clock of an interface's host."""
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

    def steady(self, packets: Packets) -> Packets:
        """Select the packets in the steady window."""
        inside = (packets.time_ns >= self.steady_ns) & (packets.time_ns < self.stop_ns)
        return packets.later(lambda column: column[inside])

    @cached_property
    def _read(self) -> tuple[FlowTable, dict[str, Packets]]:
        """All flows; and packets by interface, with common flow numbers."""
        captures = {
            name: read_capture(self.capture_file(name), every_protocol=True)
            for name in self.manifest.captures
        }
        common, mappings = unify(table for _, table in captures.values())
        renumbered = {}
        for name, mapping in zip(list(captures), mappings, strict=True):
            # otherwise the columns that it replaces would stay in memory
            packets, _ = captures.pop(name)
            renumbered[name] = self._on_plan_clock(name, packets.renumbered(*mapping))
        give_back()
        return common, renumbered

    @property
    def flows(self) -> FlowTable:
        """All connections of all captures; `Packets.flow` counts them."""
        return self._read[0]

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

    def _on_plan_clock(self, interface: str, packets: Packets) -> Packets:
        """Convert packets' times from the host's clock to the plan's.

        Frame numbers are not used here, and take no memory.
        """
        return replace(
            packets,
            time_ns=self.clock(interface).of_stamps(packets.time_ns),
            frame=np.broadcast_to(np.zeros((), packets.frame.dtype), packets.frame.shape),
        )

    def capture(self, interface: str) -> Packets:
        """Return all packets captured on an interface; `widened` makes them int64."""
        _, captures = self._read
        if interface not in captures:
            raise AnalysisError(f"{self.folder}/manifest.json: captures: no {interface}")
        return captures[interface]

    def release(self, interface: str) -> None:
        """Free the memory of a capture that will not be read again."""
        # The following properties are over all captures.
        _ = self.last_seen_ns, self.largest_frame_bytes
        self._read[1].pop(interface, None)

    @cached_property
    def last_seen_ns(self) -> int:
        """Time of the last packet in all captures."""
        captures = [self.capture(interface) for interface in self.manifest.captures]
        return int(max(packets.time_ns.max(initial=0) for packets in captures))

    @cached_property
    def largest_frame_bytes(self) -> int:
        """Size of the largest frame in all captures."""
        captures = [self.capture(interface) for interface in self.manifest.captures]
        return int(max(packets.frame_bytes.max(initial=0) for packets in captures))

    def entering(self, queue: Queue) -> Packets:
        """Merge the packets that were offered to a queue, in time order."""
        return merge([self._passing(queue, interface) for interface in queue.taps_in])

    def leaving(self, queue: Queue) -> Packets:
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
        here = self._lanes_out(queue)[lanes_of(packets)]
        return packets if here.all() else packets.where(here)

    def _lanes_out(self, queue: Queue) -> BoolArray:
        """Mark the lanes whose packets leave a router at a queue's interface; shape (2 flows,)."""
        routes, flows = Routes(queue.ways_out or {}), self.flows
        ends = (end for n in range(len(flows)) for end in (flows.destination(n), flows.source(n)))
        out = (routes.way_out(address) == queue.interface for address, _ in ends)
        return np.fromiter(out, dtype=bool, count=2 * len(flows))

    def between(self, interface: str, connection: Connection, *, forward: bool) -> Packets:
        """Select a connection's packets, data or ACKs, at an interface."""
        wanted = (interface, connection.name, forward)
        if not any(name == connection.name for _, name, _ in self._selected):
            self._selected.clear()  # metrics are computed connection by connection
        if wanted not in self._selected:
            self._selected[wanted] = self._select(interface, connection, forward)
        return self._selected[wanted]

    def _select(self, interface: str, connection: Connection, forward: bool) -> Packets:
        packets = self.capture(interface)
        if interface not in self._lanes:
            self._lanes[interface] = Lanes(lanes_of(packets))
        rows = self.rows(self._lanes[interface], connection, forward=forward)
        return packets.later(lambda column: column[rows].astype(np.int64))

    def rows(self, lanes: Lanes, connection: Connection, *, forward: bool) -> IntArray:
        """List the rows of a connection's packets, data or ACKs, ascending."""
        known = (connection.name, forward)
        if known not in self._halves:
            source = (connection.source, connection.source_port)
            sink = (connection.destination, connection.port)
            ends = (source, sink) if forward else (sink, source)
            self._halves[known] = [2 * flow + half for flow, half in self.flows.find(*ends)]
        return lanes.rows(*self._halves[known])

    def of_datagrams(self, flow: DatagramFlow, interface: str) -> Packets:
        """Select a UDP flow's packets at an interface."""
        sender, receiver = (flow.source, flow.source_port), (flow.destination, flow.port)
        packets, found = self.capture(interface), self.flows.find(sender, receiver, UDP)
        lanes = [2 * number + half for number, half in found]
        return packets.where(np.isin(lanes_of(packets), lanes)).widened()

    def document(self, name: str) -> Any:
        """Read a JSON file of the folder.

        Raises: AnalysisError if the file does not exist or is not JSON.
        """
        try:
            with open_run_file(self.folder, name) as file:
                return read_json(file.read())
        except (OSError, ValueError) as error:
            raise AnalysisError(f"{self.folder / name}: {error}") from error

    def table(self, name: str, *needed: str) -> dict[str, list[str]]:
        """Read a CSV table with a `# key: value` preamble, as columns of strings.

        Args:
            name: a file in the folder.
            needed: columns that the table must have.

        Raises: AnalysisError if a column is missing, or a row has another length.
        """
        rows = self._rows(name, needed)
        header = next(rows)
        content = list(rows)
        return {title: [row[at] for row in content] for at, title in enumerate(header)}

    def numbers(self, name: str, *columns: str) -> dict[str, IntArray]:
        """Read columns of whole numbers from a CSV table with a `# key: value` preamble.

        Args:
            name: a file in the folder.
            columns: the columns to read.

        Raises: AnalysisError if a column is missing, or a row has another length or no number.
        """
        rows = self._rows(name, columns)
        header = next(rows)
        places = [header.index(title) for title in columns]
        read = [array("q") for _ in columns]
        for number, row in enumerate(rows, start=1):
            try:
                for column, at in zip(read, places, strict=True):
                    column.append(int(row[at]))
            except (ValueError, OverflowError) as error:
                raise AnalysisError(f"{self.folder / name}: row {number}: {error}") from error
        return {
            title: np.array(column, dtype=np.int64)
            for title, column in zip(columns, read, strict=True)
        }

    def _rows(self, name: str, needed: tuple[str, ...]) -> Iterator[list[str]]:
        """Yield a table's header, then its rows, each as long as the header."""
        if not (self.folder / name).exists():
            self._refuse_left_out()
        with open_run_file(self.folder, name) as opened:
            file = io.TextIOWrapper(opened, "utf-8", newline="")
            rows = csv.reader(line for line in file if not line.startswith("#"))
            header = next(rows, [])
            missing = [title for title in needed if title not in header]
            if missing:
                raise AnalysisError(
                    f"{self.folder / name}: no column {', '.join(missing)}: "
                    "written by another version, or cut off"
                )
            yield header
            for number, row in enumerate(rows, start=1):
                if len(row) != len(header):
                    raise AnalysisError(
                        f"{self.folder / name}: row {number} has {len(row)} of "
                        f"{len(header)} columns"
                    )
                yield row
