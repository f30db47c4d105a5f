"""Runs whose packets are columns: an Analysis without captures, for the tests of metrics.

Everything is real except the captures. A test gives the packets of connections at both ends, or
those that passed a queue; the rest has defaults: times count from 0, and the steady window is the
run.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from ipaddress import IPv6Address
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Any, TypeVar

import numpy as np
from capture_analysis.columns import Packets, merge
from capture_analysis.flow_table import FLOW, TCP, FlowTable
from conversation import packets
from pydantic import TypeAdapter

from support.queue_columns import passage_of, queue_of
from support.synthetic_run import CONNECTIONS, SENDER, manifest
from twoway.contract.network import Queue
from twoway.measure.analysis import Analysis
from twoway.measure.queue_view import QueueView
from twoway.measure.queues import Occupancy, Passage, occupancy
from twoway.measure.run_folder import Run

_Kind = TypeVar("_Kind")

NO_PACKETS = packets(time_ns=[])
STOP_NS = 1_000_000_000_000
_PASSED = ("directions", "ack_directions")


@dataclass(frozen=True)
class Ends:
    """The packets of a connection from h1 to h2, at both ends and behind its last queue.

    Attributes:
        sent, acks_in: data and ACKs at the sender.
        arrived, acks_out: data and ACKs at the receiver.
        behind: data at the interface of the last queue.
        fields: fields of the connection that differ from those of any other.
    """

    sent: Packets = NO_PACKETS
    acks_in: Packets = NO_PACKETS
    arrived: Packets = NO_PACKETS
    acks_out: Packets = NO_PACKETS
    behind: Packets = NO_PACKETS
    fields: Mapping[str, Any] = field(default_factory=dict)


class ColumnRun(Run):
    """A run whose captures are columns.

    Args:
        folder: a folder with manifest.json.
        captures: packets by interface, their flows numbered as the manifest's connections.
        documents: contents of the folder's JSON files by name.
    """

    def __init__(
        self, folder: Path, captures: Mapping[str, Packets], documents: Mapping[str, Any]
    ) -> None:
        super().__init__(folder)
        self._given, self._documents = captures, documents
        self._unread.clear()
        seen = captures.values()
        self._last_seen_ns = max((int(each.time_ns.max(initial=0)) for each in seen), default=0)
        self._largest_bytes = max((int(e.frame_bytes.max(initial=0)) for e in seen), default=0)

    @property
    def flows(self) -> FlowTable:
        """The manifest's connections."""
        rows = np.zeros(len(self.connections), dtype=FLOW)
        for row, each in zip(rows, self.connections, strict=True):
            for end, address in (("source", each.source), ("destination", each.destination)):
                row[end] = np.frombuffer(IPv6Address(f"::ffff:{address}").packed, dtype=np.uint8)
            row["source_port"], row["destination_port"] = each.source_port, each.port
            row["version"], row["protocol"] = 4, TCP
        return FlowTable(rows)

    def capture(self, interface: str) -> Packets:
        """Return the packets of an interface."""
        return self._given.get(interface, NO_PACKETS)

    def document(self, name: str, kind: type[_Kind]) -> _Kind:
        """Return the content of a JSON file."""
        return TypeAdapter(kind).validate_python(self._documents[name])


def queue_view(
    passed: Passage | None = None,
    queue: Queue | None = None,
    all_packets: Occupancy | None = None,
    **fields: Any,
) -> QueueView:
    """Make the view of a queue; by default a drop-tail queue without packets.

    Args:
        passed: the packets that passed it.
        queue: the queue.
        all_packets: its length, if it is not that of these packets.
        fields: fields of the view that do not follow from these two.
    """
    passed = passed or passage_of([], [])
    length = all_packets or occupancy(passed)
    found: dict[str, Any] = {
        "queue": queue or queue_of(),
        "passed": passed,
        "length": lambda: length,
        "kernel": lambda: (length, length),
        **dict.fromkeys(("slots", "table", "holds")),
        "late_ns": lambda: np.zeros(len(passed.departures), dtype=np.int64),
    }
    return QueueView(**{**found, **fields})


def analysis_of(
    *connections: Ends,
    queues: Mapping[str, QueueView] = MappingProxyType({}),
    links: Mapping[str, Mapping[str, Any]] = MappingProxyType({}),
    steady_ns: int = 0,
    stop_ns: int = STOP_NS,
    documents: Mapping[str, Any] = MappingProxyType({}),
    medium: Mapping[str, Any] | None = None,
) -> Analysis:
    """Make the analysis of a run.

    Args:
        connections: its connections, named "0", "1" and so on.
        queues: its queues by direction; one without packets is passed by those behind it.
        links: elements of links in the profile, by direction.
        steady_ns: start of the steady window.
        stop_ns: end of traffic.
        documents: contents of the run's JSON files by name.
        medium: the profile's half_duplex, the medium that both directions of a link share.
    """
    described = [_described(number, each) for number, each in enumerate(connections)]
    passed_by = [name for each in described for key in _PASSED for name in each[key]]
    given = {name: queue_view() for name in passed_by} | dict(queues)
    views = {name: _of_direction(name, view) for name, view in given.items()}
    captures = {view.queue.interface: NO_PACKETS for view in views.values()}
    for number, (ends, fields) in enumerate(zip(connections, described, strict=True)):
        last = views[fields["directions"][-1]].queue.interface
        source, sink = fields["source_interface"], fields["sink_interface"]
        for interface, sender, here in (
            (source, 0, ends.sent),
            (source, 1, ends.acks_in),
            (sink, 0, ends.arrived),
            (sink, 1, ends.acks_out),
            (last, 0, ends.behind),
        ):
            of_end = {"flow": np.full(len(here), number), "half": np.full(len(here), sender)}
            mine = replace(here, **of_end)
            captures[interface] = merge([captures.get(interface, NO_PACKETS), mine])
    document = manifest() | {
        "clock": {"start_ns": 0, "steady_ns": steady_ns, "stop_ns": stop_ns},
        "connections": described,
        "queues": [view.queue.model_dump(mode="json") for view in views.values()],
        "profile": {
            "directions": {n: {"queue_packets": 10, **link} for n, link in links.items()},
            "half_duplex": medium,
        },
        "captures": {name: "inout" if name[0] == "h" else "out" for name in captures},
        "capture_drops": dict.fromkeys(captures, 0),
    }
    with TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "manifest.json").write_text(json.dumps(document), encoding="utf-8")
        analysis = Analysis(folder)
        analysis.run = ColumnRun(folder, captures, documents)
    analysis.queues = {name: _passed_by(view, captures) for name, view in views.items()}
    return analysis


def _passed_by(view: QueueView, captures: Mapping[str, Packets]) -> QueueView:
    """Let a queue without packets of its own be passed by those captured behind it, at once."""
    behind = captures[view.queue.interface]
    if len(view.passed.packets) or not len(behind):
        return view
    return replace(view, passed=Passage(behind, behind.time_ns, behind.payload_bytes > 0))


def _of_direction(name: str, view: QueueView) -> QueueView:
    own = {"direction": name}
    if name == "reverse" and view.queue.interface == queue_of().interface:
        own["interface"] = "r2-eth1"
    return replace(view, queue=view.queue.model_copy(update=own))


def _described(number: int, ends: Ends) -> dict[str, Any]:
    """Describe a connection as a manifest does."""
    own = {"name": str(number), "source_port": 40_001 + number, "port": 5_001 + number}
    since = {"connect_ns": 0, "start_ns": 0}
    return {**SENDER, **CONNECTIONS[0], **own, **since, **ends.fields}
