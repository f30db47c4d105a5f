"""Reading a run's folder: manifest.json, and the files it names.

These files never change once the run has finished. If the experiment's file changes later, in its
texts, statements or warm-up, experiment.json in the run's folder holds the changed experiment.
"""

import csv
import json
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from capture_analysis.columns import BoolArray, FlowTable, Packets, merge, unify
from capture_analysis.errors import AnalysisError
from capture_analysis.reading.capture import read_capture

from twoway.contract.manifest import Manifest, read_manifest
from twoway.contract.network import Connection, Queue
from twoway.measure.clocks import Clock, read_clock


def manifest_of(folder: Path) -> Manifest:
    """Read a run's manifest.json, updated with experiment.json if any.

    Raises: AnalysisError if the folder has no manifest, or a document is not sound.
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
            raise AnalysisError(
                f"{folder}: missing or not as the run left it: {', '.join(damaged)}"
            )
        self.queues = self.manifest.queues
        self.connections = self.manifest.connections
        self.start_ns = self.manifest.clock.start_ns
        self.steady_ns = self.manifest.clock.steady_ns
        self.stop_ns = self.manifest.clock.stop_ns
        self._clocks = {
            interface.name: read_clock(self.manifest, interface.node)
            for interface in self.manifest.interfaces
        }

    @property
    def exact_clock(self) -> bool:
        """True if the run was in virtual time."""
        return self.manifest.clock_source == "virtual"

    @property
    def loses_on_links(self) -> bool:
        """True if a link loses packets behind its queue."""
        return any(d.loss for d in self.manifest.profile.directions.values())

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
        return packets.where((packets.time_ns >= self.steady_ns) & (packets.time_ns < self.stop_ns))

    @cached_property
    def _read(self) -> tuple[FlowTable, dict[str, Packets]]:
        """All flows; and packets by interface, with common flow numbers."""
        interfaces = list(self.manifest.captures)
        captures = [read_capture(self._capture_file(name)) for name in interfaces]
        common, mappings = unify(table for _, table in captures)
        renumbered = {
            name: self._on_plan_clock(name, packets.renumbered(*mapping))
            for name, (packets, _), mapping in zip(interfaces, captures, mappings, strict=True)
        }
        return common, renumbered

    @property
    def flows(self) -> FlowTable:
        """All connections of all captures; `Packets.flow` counts them."""
        return self._read[0]

    def _capture_file(self, interface: str) -> Path:
        """Find an interface's capture file, compressed or plain."""
        plain = f"pcap/{interface}.pcap"
        for name in (f"{plain}.zst", plain):
            if name in self.manifest.files:
                return self.folder / name
        raise AnalysisError(f"{self.folder}/manifest.json: files: no {plain}.zst")

    def _on_plan_clock(self, interface: str, packets: Packets) -> Packets:
        """Convert packets' times from the host's clock to the plan's."""
        return replace(packets, time_ns=self.clock(interface).of_stamps(packets.time_ns))

    def capture(self, interface: str) -> Packets:
        """Return all packets captured on an interface."""
        _, captures = self._read
        if interface not in captures:
            raise AnalysisError(f"{self.folder}/manifest.json: captures: no {interface}")
        return captures[interface]

    @cached_property
    def last_seen_ns(self) -> int:
        """Time of the last packet in all captures."""
        captures = [self.capture(interface) for interface in self.manifest.captures]
        return int(max(packets.time_ns.max(initial=0) for packets in captures))

    def entering(self, queue: Queue) -> Packets:
        """Merge the packets that were offered to a queue, in time order."""
        parts = []
        for interface in queue.taps_in:
            packets = self.capture(interface)
            if self.manifest.captures[interface] == "inout":
                raise AnalysisError(
                    f"{interface}: captured both ways, but {queue.interface}"
                    " needs its incoming packets alone"
                )
            parts.append(packets)
        return merge(parts)

    def between(self, interface: str, connection: Connection, *, forward: bool) -> Packets:
        """Select a connection's packets, data or ACKs, at an interface."""
        packets = self.capture(interface)
        return packets.where(self.belongs(packets, connection, forward=forward))

    def belongs(self, packets: Packets, connection: Connection, *, forward: bool) -> BoolArray:
        """Mark a connection's packets, data or ACKs; shape (n,)."""
        source = (connection.source, connection.source_port)
        sink = (connection.destination, connection.port)
        ends = (source, sink) if forward else (sink, source)
        found = self.flows.find(*ends)
        directions = [2 * flow + half for flow, half in found]
        return np.isin(2 * packets.flow + packets.half, directions)

    def document(self, name: str) -> Any:
        """Read a JSON file of the folder.

        Raises: AnalysisError if the file does not exist or is not JSON.
        """
        try:
            return json.loads((self.folder / name).read_text())
        except (OSError, ValueError) as error:
            raise AnalysisError(f"{self.folder / name}: {error}") from error

    def table(self, name: str, *needed: str) -> dict[str, list[str]]:
        """Read a CSV table with a `# key: value` preamble, as columns of strings.

        Args:
            name: a file in the folder.
            needed: columns that the table must have.

        Raises: AnalysisError if a column is missing, or a row has another length.
        """
        with (self.folder / name).open(newline="") as file:
            rows = list(csv.reader(line for line in file if not line.startswith("#")))
        header = rows[0] if rows else []
        missing = [title for title in needed if title not in header]
        if missing:
            raise AnalysisError(
                f"{self.folder / name}: no column {', '.join(missing)}: "
                "written by another version, or cut off"
            )
        for number, row in enumerate(rows[1:], start=1):
            if len(row) != len(header):
                raise AnalysisError(
                    f"{self.folder / name}: row {number} has {len(row)} of {len(header)} columns"
                )
        return {title: [row[at] for row in rows[1:]] for at, title in enumerate(header)}
