"""A run's folder, made by hand: small enough that every number follows from two timetables.

    h1 --- r1 ===== r2 --- h2 8 Mbit/s in each direction, so a byte takes a microsecond

Each bottleneck carries 500 bytes of a data frame and 50 of an acknowledgement (the profile
subtracts 4 bytes from the captured 504 and 54), so these take 500 and 50 us, and then 1000 us to
the far host. Everything else takes no time. The steady window is 10000..30000 us.

The events: h1 sends five segments into a queue of four, and the last is dropped. The first of their
ACKs meets a full queue of h2's data and is dropped too; the next three wait behind that data and
leave 50 us apart instead of 500. They release a burst, whose four duplicate ACKs make h1 send the
lost segment again. A few single segments follow, one of them after the window.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal

from pcap_files import EPOCH_NS, pcap, tcp_frame

from twoway.contract.metrics import Metrics
from twoway.manifest import Manifest

START_NS = EPOCH_NS
STEADY_US, STOP_US = 10_000, 30_000
DELAY_US = 1000
PAYLOAD_BYTES = 450
SNAP_BYTES = 96
H1, H2 = "10.0.1.2", "10.0.2.2"
# The first connection's sequence numbers wrap after its second segment.
FIRST_BYTE = {"first": (1 << 32) - 2 * PAYLOAD_BYTES, "second": 1000}


@dataclass(frozen=True)
class Crossing:
    """A packet's path through a bottleneck.

    Attributes:
        connection: the packet's connection.
        kind: data towards the connection's sink, the rest towards its source.
        number: number of a data segment, from 0; or number of segments that it acknowledges.
        entered_us: time after the start of traffic at which its host sent it.
        left_us: end of its transmission; None if it was dropped.
        delayed_us: additional delay after the link's.
    """

    connection: Literal["first", "second"]
    kind: Literal["data", "ack", "fin"]
    number: int
    entered_us: float
    left_us: float | None
    delayed_us: float = 0


FORWARD = (
    Crossing("first", "data", 0, 5000, 5500),
    Crossing("second", "ack", 1, 6500, 6550),
    Crossing("first", "data", 1, 10000, 10500),
    Crossing("first", "data", 2, 10000, 11000),
    Crossing("first", "data", 3, 10000, 11500),
    Crossing("first", "data", 4, 10000, 12000),
    Crossing("first", "data", 5, 10000, None),
    Crossing("second", "ack", 2, 12900, 12950),
    Crossing("second", "ack", 3, 13400, 13450),
    Crossing("second", "ack", 4, 13900, 13950),
    Crossing("second", "ack", 5, 14400, 14450),
    Crossing("second", "ack", 6, 14900, 14950),
    Crossing("first", "data", 6, 14950, 15450),
    Crossing("first", "data", 7, 14950, 15950),
    Crossing("first", "data", 8, 15000, 16450),
    Crossing("first", "data", 9, 15050, 16950),
    Crossing("first", "data", 5, 18500, 19000),
    Crossing("second", "ack", 7, 22000, 22050),
    Crossing("first", "data", 10, 23000, 23500),
    Crossing("second", "ack", 8, 26500, 26550),
    Crossing("first", "data", 11, 27000, 27500),
    Crossing("first", "data", 12, 30500, 31000),
)
REVERSE = (
    Crossing("second", "data", 0, 5000, 5500),
    Crossing("first", "ack", 1, 6500, 6550),
    Crossing("second", "data", 1, 11400, 11900),
    Crossing("second", "data", 2, 11400, 12400),
    Crossing("second", "data", 3, 11400, 12900),
    Crossing("second", "data", 4, 11400, 13400),
    Crossing("second", "data", 5, 11400, 13900),
    Crossing("first", "ack", 2, 11500, None),
    Crossing("first", "ack", 3, 12000, 13950),
    Crossing("first", "ack", 4, 12500, 14000),
    Crossing("first", "ack", 5, 13000, 14050),
    Crossing("first", "ack", 5, 16450, 16500),
    Crossing("first", "ack", 5, 16950, 17000),
    Crossing("first", "ack", 5, 17450, 17500),
    Crossing("first", "ack", 5, 17950, 18000),
    Crossing("first", "ack", 10, 20000, 20050),
    Crossing("second", "data", 6, 20500, 21000),
    Crossing("first", "ack", 11, 24500, 24550),
    Crossing("second", "data", 7, 25000, 25500),
    Crossing("first", "ack", 12, 28500, 28550),
    Crossing("first", "fin", 12, 29000, 29050),
    Crossing("first", "ack", 13, 32000, 32050),
)
SEGMENTS = {"first": 13, "second": 8}

CONNECTIONS: list[dict[str, Any]] = [
    {
        "name": "first",
        "from": "h1",
        "to": "h2",
        "direction": "forward",
        "ack_direction": "reverse",
        "directions": ["forward"],
        "ack_directions": ["reverse"],
        "source": H1,
        "destination": H2,
        "source_port": 40001,
        "port": 5001,
        "source_interface": "h1-eth0",
        "sink_interface": "h2-eth0",
    },
    {
        "name": "second",
        "from": "h2",
        "to": "h1",
        "direction": "reverse",
        "ack_direction": "forward",
        "directions": ["reverse"],
        "ack_directions": ["forward"],
        "source": H2,
        "destination": H1,
        "source_port": 40002,
        "port": 5002,
        "source_interface": "h2-eth0",
        "sink_interface": "h1-eth0",
    },
]
QUEUES: list[dict[str, Any]] = [
    {"direction": "forward", "interface": "r1-eth1", "limit_packets": 4, "taps_in": ["r1-eth0"]},
    {"direction": "reverse", "interface": "r2-eth1", "limit_packets": 5, "taps_in": ["r2-eth0"]},
]
LINK = {
    "rate_bit": 8_000_000,
    "reallocations": None,
    "leaves_at_start": False,
    "overhead_bytes": -4,
    "cell_bytes": 0,
    "cell_overhead_bytes": 0,
    "delay_ns": DELAY_US * 1000,
}
SENDER = {
    "congestion": "reno",
    "congestion_in_kernel": "reno",
    "connect_ns": START_NS,
    "start_ns": START_NS,
}
INTERFACES = (
    ("h1", "h1-eth0", H1, "r1-eth0"),
    ("r1", "r1-eth0", "10.0.1.1", "h1-eth0"),
    ("h2", "h2-eth0", H2, "r2-eth0"),
    ("r2", "r2-eth0", "10.0.2.1", "h2-eth0"),
    ("r1", "r1-eth1", "10.0.0.1", "r2-eth1"),
    ("r2", "r2-eth1", "10.0.0.2", "r1-eth1"),
)
CAPTURES = {
    "h1-eth0": "inout",
    "h2-eth0": "inout",
    "r1-eth0": "in",
    "r1-eth1": "out",
    "r2-eth0": "in",
    "r2-eth1": "out",
}

# Time, interface and packets: a kernel's count, and the time of its reading.
KERNEL_READ_NS = 500
KERNEL_QUEUE = (
    (0, "r1-eth1", 0),
    (0, "r2-eth1", 0),
    (10001, "r1-eth1", 4),
    (10001, "r2-eth1", 0),
    (11450, "r1-eth1", 2),
    (11450, "r2-eth1", 5),
    (13600, "r1-eth1", 0),
    (13600, "r2-eth1", 4),
)

Table = Sequence[Crossing]
Timed = tuple[float, bytes]


def write_run(
    folder: Path,
    predictions: Sequence[dict[str, Any]] = (),
    claims: Sequence[dict[str, Any]] = (),
    findings: Sequence[dict[str, Any]] = (),
    *,
    forward: Table = FORWARD,
    reverse: Table = REVERSE,
) -> Path:
    """Write the run's folder.

    Args:
        folder: made if it does not exist.
        predictions: of the experiment, as made by `prediction`.
        claims: likewise, by `claim`.
        findings: likewise, by `finding`.
        forward: packets offered to the queue from h1.
        reverse: packets offered to the queue from h2.

    Returns: the folder.
    """
    files = dict(_captures(tuple(forward), tuple(reverse)))
    files["sockets/queues.csv"] = _queue_samples()
    files["sockets/tcp-info.csv"] = _tcp_info()
    for node, drops in (("r1", _drops(forward)), ("r2", _drops(reverse))):
        for when, count in (("before", 0), ("after", drops)):
            qdiscs = [
                {"dev": dev, "kind": "netem", "root": True, "drops": drops}
                for dev, drops in (("lo", 0), (f"{node}-eth1", count))
            ]
            files[f"qdisc/{node}-{when}.json"] = json.dumps(qdiscs).encode()
    for name, segments in SEGMENTS.items():
        received = {"bytes_received": segments * PAYLOAD_BYTES}
        files[f"traffic/{name}-sink.json"] = json.dumps(received).encode()
        limits = {"rwnd_limited_us": 0, "sndbuf_limited_us": 0}
        files[f"traffic/{name}-source.json"] = json.dumps(limits).encode()
    said = {"predictions": predictions, "claims": claims, "findings": findings}
    files["manifest.json"] = json.dumps(manifest(sorted(files), **said)).encode()
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return folder


def metrics_of(document: dict[str, Any], metrics: dict[str, dict[str, Any]]) -> Metrics:
    """Return the metrics.json of a run without fidelity checks, beside its manifest.json."""
    manifest = Manifest.model_validate(document)
    return Metrics.model_validate(
        {
            **{name: document[name] for name in ("run", "backend", "clock_source")},
            "measured_sha256": manifest.measured_sha256,
            "experiment": document["experiment"]["id"],
            "kernel": document["kernel"]["release"],
            "metrics": metrics,
            "fidelity": [],
        }
    )


def edit_json(path: Path, change: Callable[[Any], object]) -> None:
    """Change a JSON document in place."""
    document = json.loads(path.read_text(encoding="utf-8"))
    change(document)
    path.write_text(json.dumps(document), encoding="utf-8")


def edit_manifest(folder: Path, change: Callable[[Any], object]) -> None:
    """Change a run's manifest.json in place."""
    edit_json(folder / "manifest.json", change)


def moved(table: Table, kind: str, number: int, **times_us: float) -> Table:
    """Return a timetable with other times of the first packet of a kind and number."""
    chosen = next(c for c in table if (c.kind, c.number) == (kind, number))
    return [replace(c, **times_us) if c is chosen else c for c in table]  # type: ignore[arg-type]


def prediction(metric: str, value: float | None = None, **more: Any) -> dict[str, Any]:
    """Make a prediction of a metric: a value with `tolerance`, or `at_least` and `at_most`."""
    return _statement(metric, value, theory="by_hand", **more)


def claim(metric: str, value: float | None = None, **more: Any) -> dict[str, Any]:
    """Make a claim about a metric; `tolerance` is the precision of the print."""
    return _statement(
        metric, value, **{"claim": "It is so.", "where": "table 1", "by": "paper", **more}
    )


def finding(metric: str, value: float | None = None, **more: Any) -> dict[str, Any]:
    """Make a finding on a metric."""
    return _statement(metric, value, **{"finding": "It was so.", **more})


def _statement(metric: str, value: float | None, **more: Any) -> dict[str, Any]:
    tolerance = None if value is None else 0
    return {"metric": metric, "value": value, "tolerance": tolerance, "why": "by hand", **more}


def _drops(table: Table) -> int:
    return sum(crossing.left_us is None for crossing in table)


def manifest(files: Sequence[str] = (), **said: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the run's manifest.json, with the given predictions, claims and findings."""
    keys = ("node", "name", "address", "peer")
    return {
        "schema": 4,
        "run": "20000101-000030-000000",
        "backend": "uml",
        "clock_source": "virtual",
        "clock_offset_ns": 0,
        "experiment": {
            "id": "by-hand",
            "title": "Two drops & <one> compression",
            "summary": "Made by hand.",
            "source": None,
            "matrix": {},
            "stack": {"mtu_bytes": 490, "acks": "every-segment"},
            "warm_up_s": STEADY_US / 1e6,
            "duration_s": STOP_US / 1e6,
            **{kind: list(said.get(kind, ())) for kind in ("predictions", "claims", "findings")},
        },
        "point": {},
        "spec_sha256": "0" * 64,
        "identity": "0" * 64,
        "git": "0" * 12,
        "kernel": {"release": "6.12.0", "key": "0" * 16},
        "modules": {},
        "tools": {"tcpdump": "tcpdump version 4.99.3"},
        "clock": {
            "start_ns": START_NS,
            "steady_ns": START_NS + STEADY_US * 1000,
            "stop_ns": START_NS + STOP_US * 1000,
        },
        "nodes": {"hosts": ["h1", "h2"], "routers": ["r1", "r2"]},
        "interfaces": [dict(zip(keys, row, strict=True)) for row in INTERFACES],
        "queues": [{**LINK, **queue} for queue in QUEUES],
        "connections": [{**SENDER, **connection} for connection in CONNECTIONS],
        "captures": CAPTURES,
        "capture_drops": dict.fromkeys(CAPTURES, 0),
        "profile": {"directions": {}},
        "files": list(files),
        "timing": {"wall_s": 0.01, "simulated_s": 0.03, "speed": 3.0},
    }


@cache
def _captures(forward: tuple[Crossing, ...], reverse: tuple[Crossing, ...]) -> dict[str, bytes]:
    entering, leaving, arriving = {}, {}, {}
    for direction, table in (("forward", forward), ("reverse", reverse)):
        frames = list(zip(table, _frames(direction, table), strict=True))
        entering[direction] = [(c.entered_us, frame) for c, frame in frames]
        left = [(c, c.left_us, frame) for c, frame in frames if c.left_us is not None]
        leaving[direction] = [(left_us, frame) for _, left_us, frame in left]
        arriving[direction] = [
            (left_us + DELAY_US + crossing.delayed_us, frame) for crossing, left_us, frame in left
        ]
    return {
        "pcap/h1-eth0.pcap": _capture(entering["forward"], arriving["reverse"]),
        "pcap/h2-eth0.pcap": _capture(entering["reverse"], arriving["forward"]),
        "pcap/r1-eth0.pcap": _capture(entering["forward"]),
        "pcap/r1-eth1.pcap": _capture(leaving["forward"]),
        "pcap/r2-eth0.pcap": _capture(entering["reverse"]),
        "pcap/r2-eth1.pcap": _capture(leaving["reverse"]),
    }


def _capture(*parts: list[Timed]) -> bytes:
    frames = sorted((timed for part in parts for timed in part), key=lambda timed: timed[0])
    times = [(START_NS + round(time_us * 1000), frame) for time_us, frame in frames]
    return pcap(times, snap_bytes=SNAP_BYTES)


def _frames(direction: str, table: Table) -> list[bytes]:
    """Return each packet as a frame; IP counts a host's packets of a connection, as Linux does."""
    hosts = {"source": H1, "destination": H2}
    if direction == "reverse":
        hosts = {"source": H2, "destination": H1}
    sent = {"first": 0, "second": 0}
    frames = []
    for crossing in table:
        name = crossing.connection
        sent[name] += 1
        ports = next(c for c in CONNECTIONS if c["name"] == name)
        byte = (FIRST_BYTE[name] + crossing.number * PAYLOAD_BYTES) % (1 << 32)
        if crossing.kind == "data":
            fields = {"sport": ports["source_port"], "dport": ports["port"], "seq": byte}
        else:
            fields = {"sport": ports["port"], "dport": ports["source_port"], "ack": byte}
        frame = tcp_frame(
            PAYLOAD_BYTES if crossing.kind == "data" else 0,
            ip_id=sent[name],
            flags="FA" if crossing.kind == "fin" else "A",
            **hosts,
            **fields,
        )
        frames.append(bytes(frame))
    return frames


def _queue_samples() -> bytes:
    lines = ["# clock: CLOCK_REALTIME, ns", "time_ns,read_ns,interface,packets"]
    for time_us, interface, count in KERNEL_QUEUE:
        time_ns = START_NS + time_us * 1000
        lines.append(f"{time_ns},{time_ns + KERNEL_READ_NS},{interface},{count}")
    return "\n".join([*lines, ""]).encode()


def _tcp_info() -> bytes:
    lines = ["# rtt: us", "time_ns,source_port,cwnd,ssthresh,rtt_us"]
    for time_us, cwnd, ssthresh, rtt_us in ((0, 10, -1, 1500), (19000, 5, 5, 2500)):
        lines += [
            f"{START_NS + time_us * 1000},{port},{cwnd},{ssthresh},{rtt_us}"
            for port in (40001, 40002)
        ]
    return "\n".join([*lines, ""]).encode()
