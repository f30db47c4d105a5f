"""A run's folder as the analysis sees it: manifest.json, and the files it names.

Nothing of that changes once the run has finished. If the experiment's file does, in its texts,
expectations or warm-up, experiment.json beside it has what the file says since.
"""

import csv
import json
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from capture_analysis.columns import BoolArray, FlowTable, Packets, merge, unify
from capture_analysis.errors import AnalysisError
from capture_analysis.reading.capture import read_capture

from twoway.measure.clocks import Clock, read_clock

# The version of manifest.json that this package reads.
SCHEMA = 1
# The experiment as its file describes it now, where that is not what manifest.json says.
EXPERIMENT = "experiment.json"


@dataclass(frozen=True)
class Queue:
    """A bottleneck queue: where it is, how fast it drains, and the taps around it.

    Attributes:
        direction: the profile's name of it.
        interface: the router's interface that it feeds.
        rate_bit: link rate, bit/s; of a DTM channel that at the start of traffic.
        reallocations: the file with the changes of a DTM channel's slots; None for others.
        limit_packets: drop-tail limit, the packet in service included.
        overhead_bytes, cell_bytes, cell_overhead_bytes: as in the profile.
        taps_in: interfaces whose incoming packets may enter the queue.
        delay_ns: propagation delay behind it.
        leaves_at_start: it hands over a packet when its transmission begins, not when that ends.
        credit_ns: so much too early a packet may leave after an idle time.
    """

    direction: str
    interface: str
    rate_bit: int
    reallocations: str | None
    limit_packets: int
    overhead_bytes: int
    cell_bytes: int
    cell_overhead_bytes: int
    taps_in: tuple[str, ...]
    delay_ns: int
    leaves_at_start: bool = False
    credit_ns: int = 0

    def link_bytes(self, frame_bytes: Any) -> Any:
        """Size on the link of frames (a number or an array) of the given captured size."""
        size = frame_bytes + self.overhead_bytes
        if not self.cell_bytes:
            return size
        cells = -(-size // self.cell_bytes)
        return cells * (self.cell_bytes + self.cell_overhead_bytes)

    def service_ns(self, frame_bytes: Any) -> Any:
        """Transmission time in ns, truncated as netem does it (rate in whole bytes/s)."""
        return self.link_bytes(frame_bytes) * 1_000_000_000 // (self.rate_bit // 8)


@dataclass(frozen=True)
class Connection:
    """One TCP connection of a run."""

    name: str
    direction: str
    ack_direction: str
    source: str
    destination: str
    source_port: int
    port: int
    source_interface: str
    sink_interface: str
    generator: str
    congestion: str
    window_packets: int | None
    paced: bool
    start_ns: int


def read_manifest(folder: Path) -> dict[str, Any]:
    """Read a run's manifest.json, with the experiment as it is described now.

    Raises: AnalysisError if the folder holds none that this package reads.
    """
    manifest = _document(folder / "manifest.json")
    if manifest is None:
        raise AnalysisError(f"{folder}: no manifest.json: not a finished run")
    if manifest.get("schema") != SCHEMA:
        raise AnalysisError(f"{folder}/manifest.json: not of schema {SCHEMA}")
    return manifest | (_document(folder / EXPERIMENT) or {})


def _document(path: Path) -> dict[str, Any] | None:
    """A file's JSON object; None if there is no such file."""
    try:
        document = json.loads(path.read_text())
    except OSError:
        return None
    except ValueError as error:
        raise AnalysisError(f"{path}: not JSON: {error}") from error
    if not isinstance(document, dict):
        raise AnalysisError(f"{path}: not a JSON object")
    return document


class Run:
    """A finished run's folder.

    Args:
        folder: the folder with manifest.json.

    Raises: AnalysisError if the folder holds no manifest or lacks a file that it names.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.manifest = read_manifest(folder)
        missing = [f for f in self.manifest["files"] if not (folder / f).is_file()]
        if missing:
            raise AnalysisError(f"{folder}: files are missing: {', '.join(missing)}")
        self.queues = [
            Queue(**{**q, "taps_in": tuple(q["taps_in"])}) for q in self.manifest["queues"]
        ]
        self.connections = [Connection(**c) for c in self.manifest["connections"]]
        clock = self.manifest["clock"]
        self.start_ns: int = clock["start_ns"]
        self.steady_ns: int = clock["steady_ns"]
        self.stop_ns: int = clock["stop_ns"]
        self._clocks = {
            interface["name"]: read_clock(self.manifest, interface["node"])
            for interface in self.manifest["interfaces"]
        }

    @property
    def exact_clock(self) -> bool:
        """Time stood still while the machine worked: it ran in virtual time."""
        return bool(self.manifest["clock_source"] == "virtual")

    def clock(self, interface: str) -> Clock:
        """The clock of the machine that an interface is of."""
        return self._clocks[interface]

    @property
    def clocks_differ_ns(self) -> int:
        """How far two machines' times may be apart that are the same; 0 if there is one machine."""
        off = sorted(clock.uncertainty_ns for clock in self._clocks.values())
        return sum(off[-2:])

    def seconds(self, time_ns: Any) -> Any:
        """Times on the run's clock, a number or an array, as s after the traffic's start."""
        return (time_ns - self.start_ns) / 1e9

    @property
    def window_ns(self) -> int:
        """Length of the steady window, after warm-up and until traffic stops."""
        return self.stop_ns - self.steady_ns

    def steady(self, packets: Packets) -> Packets:
        """Those of some packets that fall into the steady window."""
        return packets.where((packets.time_ns >= self.steady_ns) & (packets.time_ns < self.stop_ns))

    @cached_property
    def _read(self) -> tuple[FlowTable, dict[str, Packets]]:
        """The run's connections; and per interface its packets, with connections numbered alike."""
        interfaces = list(self.manifest["captures"])
        captures = [read_capture(self._capture_file(name)) for name in interfaces]
        common, mappings = unify(table for _, table in captures)
        renumbered = {
            name: self._on_plan_clock(name, packets.renumbered(*mapping))
            for name, (packets, _), mapping in zip(interfaces, captures, mappings, strict=True)
        }
        return common, renumbered

    def _capture_file(self, interface: str) -> Path:
        """Compressed, or as a guest writes it."""
        plain = f"pcap/{interface}.pcap"
        for name in (f"{plain}.zst", plain):
            if name in self.manifest["files"]:
                return self.folder / name
        raise AnalysisError(f"{self.folder}/manifest.json: files: no {plain}.zst")

    def _on_plan_clock(self, interface: str, packets: Packets) -> Packets:
        """Packets with the times of the plan's clock, not the machine's."""
        return replace(packets, time_ns=self.clock(interface).of_stamps(packets.time_ns))

    def capture(self, interface: str) -> Packets:
        """Everything captured on an interface."""
        _, captures = self._read
        if interface not in captures:
            raise AnalysisError(f"{self.folder}/manifest.json: captures: no {interface}")
        return captures[interface]

    @cached_property
    def last_seen_ns(self) -> int:
        """When the last packet of all captures was seen."""
        captures = [self.capture(interface) for interface in self.manifest["captures"]]
        return int(max(packets.time_ns.max(initial=0) for packets in captures))

    def entering(self, queue: Queue) -> Packets:
        """The packets that were offered to a queue, in time order."""
        parts = []
        for interface in queue.taps_in:
            packets = self.capture(interface)
            if self.manifest["captures"][interface] == "inout":
                raise AnalysisError(
                    f"{interface}: captured both ways, but {queue.interface}"
                    " needs its incoming packets alone"
                )
            parts.append(packets)
        return merge(parts)

    def between(self, interface: str, connection: Connection, *, forward: bool) -> Packets:
        """A connection's packets at an interface: data's direction, or the acks'."""
        packets = self.capture(interface)
        return packets.where(self.belongs(packets, connection, forward=forward))

    def belongs(self, packets: Packets, connection: Connection, *, forward: bool) -> BoolArray:
        """Which of some packets are a connection's, data's direction or the acks'; shape (n,)."""
        source = (connection.source, connection.source_port)
        sink = (connection.destination, connection.port)
        flows, _ = self._read
        found = flows.find(source, sink) if forward else flows.find(sink, source)
        lanes = [2 * flow + half for flow, half in found]
        return np.isin(2 * packets.flow + packets.half, lanes)

    def document(self, name: str) -> Any:
        """A JSON file of the folder.

        Raises: AnalysisError if it is not there or not JSON.
        """
        try:
            return json.loads((self.folder / name).read_text())
        except (OSError, ValueError) as error:
            raise AnalysisError(f"{self.folder / name}: {error}") from error

    def table(self, name: str, *needed: str) -> dict[str, list[str]]:
        """A CSV table with a `# key: value` preamble, as columns of strings.

        Args:
            name: a file in the folder.
            needed: columns that it must have.

        Raises: AnalysisError if one is missing, or a row is not as long as the others.
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
