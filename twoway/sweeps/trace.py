"""Looking into an interval of a finished run: the run once more, with a probe in its kernel.

The probe only reads: all captures must be equal to the byte, or there is no answer.
"""

import csv
import hashlib
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from twoway.backends.backend import Backend
from twoway.contract.files import open_run_file
from twoway.contract.network import START_NS, whole_ns
from twoway.contract.plan import PLAN
from twoway.description.point import Point
from twoway.errors import RunError, UsageError
from twoway.measure.analysis import Analysis
from twoway.measure.run_folder import Run
from twoway.measure.tables import read_numbers
from twoway.plan.interventions import EVENTS, with_probe
from twoway.plan.plan import build_plan
from twoway.progress import RunClock
from twoway.runs.captures import pack
from twoway.runs.interventions import capture_bytes
from twoway.sweeps.why import refuse_unrepeatable

_KINDS = ("ack", "send", "enqueue", "dequeue", "drop")
# Causes of a segment, as the probe names them, and in words.
_CAUSES = {
    "-": "",
    "arrival": "a segment arrived",
    "application": "the application",
    "pacing": "the pacing timer",
    "host_queue": "the host's queue has room again",
    "timeout": "time-out",
    "tail_probe": "probe of the tail (TLP)",
    "window_probe": "probe of a closed window",
    "reordering": "the timer of reordering (RACK)",
    "delayed_ack": "the timer of delayed ACKs",
    "compressed_ack": "the timer of compressed ACKs",
}
# Those of the kernel's reasons (net/dropreason-core.h) that a run has.
_REASONS = (
    *("QDISC_DROP", "TCP_OLD_DATA", "TCP_OVERWINDOW", "TCP_OFOMERGE", "TCP_ZEROWINDOW"),
    *("TCP_RFC7323_PAWS", "TCP_INVALID_SEQUENCE", "TCP_CLOSE", "TCP_RESET", "TCP_OFO_DROP"),
    *("SOCKET_RCVBUFF", "SOCKET_BACKLOG", "PROTO_MEM", "IP_NOPROTO", "NO_SOCKET", "PKT_TOO_BIG"),
    *("TC_EGRESS", "TC_INGRESS", "NETFILTER_DROP", "TCP_ACK_UNSENT_DATA", "TCP_TOO_OLD_ACK"),
)
_ACK = 0x10
_FLAGS = {0x02: "SYN", 0x01: "FIN", 0x04: "RST", _ACK: "ACK"}
_STATES = ("Open", "Disorder", "CWR", "Recovery", "Loss")
_NUMBERS = (
    *("time_ns", "kind", "cause", "interface", "reason", "source", "dest", "seq", "ack", "payload"),
    *("flags", "segments", "queue", "next", "unsent", "cwnd", "ssthresh", "packets_out", "sacked"),
    *("lost", "retransmitted", "srtt_us", "rto_us", "window", "ca_state", "pacing_bytes"),
    "left_out",
)
# Events of a data's sender: it sends data, and receives ACKs.
_OF_SENDERS = {("send", True), ("ack", False)}
# A threshold that no loss has set yet.
_NO_THRESHOLD = 2**31 - 1


@dataclass(frozen=True)
class Moment:
    """An event of a packet.

    Attributes:
        time_s: the time after the traffic's start.
        kind: ack, send, enqueue, dequeue or drop, as the probe has it.
        flow: the connection; its ports if the experiment does not name it.
        where: the host, or the queue.
        what: the event in words.
        why: why a segment leaves now, or is dropped.
        seq: number of the packet's first byte; None without data.
        ack: the number that it acknowledges.
        payload: bytes of data.
        again: whether the segment was sent before.
        queue: packets in the queue, after the event; None elsewhere.
        socket: the state of the data's sender: cwnd and in_flight in packets, ssthresh,
            state, srtt_ms, rto_ms, window and unsent in bytes, pacing_mbit. It is that before TCP
            looks at an ACK, and that after a segment is sent. None elsewhere.
    """

    time_s: float
    kind: str
    flow: str
    where: str
    what: str
    why: str
    seq: int | None
    ack: int
    payload: int
    again: bool = False
    queue: int | None = None
    socket: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Trace:
    """The interval of a run, packet by packet.

    Attributes:
        run: the run's folder.
        from_s: start of the interval, after the traffic's start.
        to_s: its end.
        moments: the events, in order.
        left_out: number of events that did not fit into the probe's table.
        captures: SHA-256 of each capture, which both runs have.
    """

    run: str
    from_s: float
    to_s: float
    moments: tuple[Moment, ...]
    left_out: int
    captures: Mapping[str, str]

    @property
    def sentences(self) -> list[str]:
        """The proof that the probe changed nothing, and the number of events left out."""
        whole = hashlib.sha256("".join(self.captures.values()).encode()).hexdigest()
        count = len(self.captures)
        found = [
            f"With the probe all {count} captures equal the run's to the byte: SHA-256 {whole}."
        ]
        if self.left_out:
            found.append(
                f"{self.left_out} later events did not fit: choose a shorter interval to see them."
            )
        return found

    def document(self) -> dict[str, Any]:
        """Return the trace as a JSON object."""
        return {**asdict(self), "sentences": self.sentences}


def trace(folder: Path, point: Point, backend: Backend, between_s: tuple[float, float]) -> Trace:
    """Run a run's experiment once more, with a probe between two times, s after traffic's start.

    Raises: UsageError for a run that cannot be repeated, or no interval in it; RunError if the
        captures differ.
    """
    run = Analysis(folder).run
    refuse_unrepeatable(run.manifest, point, backend)
    (from_s, to_s), last_s = between_s, run.seconds(run.stop_ns)
    if not 0 <= from_s < to_s <= last_s:
        wanted = f"must be 0 <= --from < --to <= {last_s:g} s, the end of traffic"
        raise UsageError(f"--from, --to: {wanted}; got {from_s:g} and {to_s:g}")
    start_ns, stop_ns = (START_NS + whole_ns(each) for each in between_s)
    interfaces = [queue.interface for queue in run.queues]
    plan = build_plan(point, in_kernel=backend.in_kernel)
    with (
        tempfile.TemporaryDirectory(prefix="twoway-") as scratch,
        RunClock(point.id, START_NS, run.stop_ns) as clock,
    ):
        again = Path(scratch)
        with_probe(plan, interfaces, (start_ns, stop_ns)).write(again / PLAN)
        backend.run(again, lambda now: clock.show(now.time_ns, now.acked_bytes, now.queued_packets))
        pack(again)
        sums = equal_captures(folder, again, run.manifest.captures)
        table = _Table(run, again)
        return Trace(str(folder), from_s, to_s, tuple(table.moments()), table.left_out, sums)


def equal_captures(folder: Path, again: Path, interfaces: Iterable[str]) -> dict[str, str]:
    """Return the SHA-256 of each capture; raise RunError for one in which two runs differ."""
    sums = {}
    for name in sorted(interfaces):
        try:
            one, other = (capture_bytes(each, f"{name}.pcap.zst") for each in (folder, again))
        except OSError as error:
            raise RunError(f"{error}: the runs cannot be compared") from error
        if one != other:
            raise RunError(
                f"{name}: the run with the probe has other packets: there is nothing to show"
            )
        sums[name] = hashlib.sha256(one).hexdigest()
    return sums


class _Table:
    """The probe's table of a run, with the names of its connections and queues."""

    def __init__(self, run: Run, again: Path) -> None:
        queues = {queue.interface: queue.direction for queue in run.queues}
        nodes = {each.name: each.node for each in run.manifest.interfaces}
        known = {**nodes, **queues}
        self._places = [*known.values(), ""]  # -1: of no interface
        words = {
            "kind": _KINDS,
            "cause": tuple(_CAUSES),
            "interface": tuple(known),
            "reason": _REASONS,
        }
        try:
            with open_run_file(again, EVENTS) as file:
                self._columns = read_numbers(file, _NUMBERS, words)
        except (OSError, ValueError, csv.Error) as error:
            raise RunError(f"the guest left no valid {EVENTS}: {error}") from error
        self.left_out = int(self._columns["left_out"].max(initial=0))
        self._run = run
        self._flows = {
            ports: (each.name, host)
            for each in run.connections
            for ports, host in (
                ((each.source_port, each.port), each.to),
                ((each.port, each.source_port), nodes[each.source_interface]),
            )
        }
        table = run.flows
        self._bases: dict[tuple[int, int], int] = {}
        for flow in range(len(table)):
            ends = table.source(flow)[1], table.destination(flow)[1]
            first = table.rows["base"][flow].tolist()
            self._bases |= {ends: first[0], ends[::-1]: first[1]}

    def moments(self) -> Iterator[Moment]:
        """List the events, in order, without drops of messages that are on no interface."""
        names = tuple(self._columns)
        for values in np.column_stack(tuple(self._columns.values())).tolist():
            row = dict(zip(names, values, strict=True))
            if row["interface"] >= 0 or row["source"] or row["dest"]:
                yield self._moment(row)

    def _moment(self, row: dict[str, int]) -> Moment:
        kind, ports = _KINDS[row["kind"]], (row["source"], row["dest"])
        name, host = self._flows.get(ports, (f"{ports[0]} > {ports[1]}", ""))
        seq = (row["seq"] - self._bases.get(ports, 0)) % 2**32
        ack = (row["ack"] - self._bases.get(ports[::-1], 0)) % 2**32 if row["ack"] else 0
        payload = row["payload"]
        again = kind == "send" and payload > 0 and (row["seq"] - row["next"]) % 2**32 >= 2**31
        return Moment(
            time_s=self._run.seconds(row["time_ns"]),
            kind=kind,
            flow=name,
            where=host if kind == "ack" else self._places[row["interface"]],
            what=f"{_verb(kind, again)} {_packet(row['flags'], seq, ack, payload)}",
            why=_reason(kind, row),
            seq=seq if payload else None,
            ack=ack,
            payload=payload,
            again=again,
            queue=row["queue"] if kind in {"enqueue", "dequeue"} else None,
            socket=_socket(kind, row) if (kind, payload > 0) in _OF_SENDERS else None,
        )


def _verb(kind: str, again: bool) -> str:
    return {
        "ack": "receives",
        "send": "sends again" if again else "sends",
        "enqueue": "takes",
        "dequeue": "passes on",
        "drop": "drops",
    }[kind]


def _packet(flags: int, seq: int, ack: int, payload: int) -> str:
    if payload:
        return f"segment {seq} to {seq + payload - 1}"
    named = " ".join(name for bit, name in _FLAGS.items() if flags & bit)
    return f"{named} {ack}" if flags & _ACK else named or "a packet"


def _reason(kind: str, row: Mapping[str, int]) -> str:
    """Write why a segment leaves now, or is dropped."""
    if kind == "drop":
        return _REASONS[row["reason"]] if row["reason"] >= 0 else "another reason"
    cause = tuple(_CAUSES)[row["cause"]]
    if cause == "timeout":
        return f"time-out after {row['rto_us'] / 1e3:g} ms"
    return _CAUSES[cause]


def _socket(kind: str, row: Mapping[str, int]) -> dict[str, Any]:
    """Describe the state of a data's sender."""
    flying = row["packets_out"] - row["sacked"] - row["lost"] + row["retransmitted"]
    threshold = row["ssthresh"]
    return {
        "cwnd": row["cwnd"],
        "in_flight": flying + (row["segments"] if kind == "send" else 0),
        "ssthresh": None if threshold >= _NO_THRESHOLD else threshold,
        "state": _STATES[row["ca_state"]] if row["ca_state"] < len(_STATES) else "?",
        "srtt_ms": row["srtt_us"] / 1e3,
        "rto_ms": row["rto_us"] / 1e3,
        "window": row["window"],
        "unsent": row["unsent"],
        "pacing_mbit": row["pacing_bytes"] * 8 / 1e6,
    }
