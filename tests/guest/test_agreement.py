"""Estimators of one quantity agree on the same traffic, however it was captured.

The captures of two runs are cut to the steady window and measured by capture-analysis: each alone
with the links' rates given, and both together. Packets under way at the window's ends count in one
estimate and not in another: at most a window of packets (EDGE).
"""

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zstandard
from capture_analysis import analyse
from capture_analysis.one_capture.document import document
from capture_analysis.one_capture.single import Given, measure
from capture_analysis.reading.capture import Capture
from capture_analysis.two_captures.pair_document import analyse_pair
from support.running import SLOW, SMALL, metrics, run_small, write_experiment
from support.runs import carry_out

from twoway.measure.analysis import Analysis
from twoway.measure.connection_view import ConnectionView
from twoway.measure.queue_view import QueueView
from twoway.measure.run_folder import Run
from twoway.measure.throughput import in_order_bytes
from twoway.paths import EXPERIMENTS

pytestmark = pytest.mark.usefixtures("guest")

TAHOE: dict[str, Any] = SLOW | {
    "profile": "zhang-10ms-20",
    "stack": {"mtu_bytes": 490, "sack": False, "rack": False, "tail_loss_probe": False},
    "flows": [
        {"name": "left", "from": "h1", "to": "h2", "congestion": "tahoe"},
        {"name": "right", "from": "h2", "to": "h1", "congestion": "tahoe", "start_s": 0.5},
    ],
    "duration_s": 600,
    "warm_up_s": 100,
}
# Relative width of a histogram's bins.
BIN, PAIR_BIN = 1 / 128, 1 / 256
FROM_PAIR = {
    "queue": {
        "queue_peak": 0.0,
        "queue_mean": 0.0,
        "utilisation": 0.0,
        "busy_periods": 0.0,
        "busy_period_segments": 0.0,
        "busy_period_cycle": 0.0,
    },
    "connection": {
        "ack_spacing_ratio": PAIR_BIN,
        "acks_compressed": 0.0,
        "acks_lost": 0.0,
        "compression_factor": PAIR_BIN,
        "compression_factor_bound": 0.0,
    },
    "run": {
        "pendulum_index": 0.0,
        "queue_correlation": 0.0,
        "both_busy": 0.0,
        "neither_busy": 0.0,
        "congestion_epochs": 0.0,
        "drops_per_epoch": 0.0,
        "single_victim_epochs": 0.0,
        "alternating_victims": 0.0,
    },
}
# From the capture near the data's source, where bunches arrive, and from that near its sink.
FROM_ONE = {
    "ack_bunch_mean": ("source", 0.0),
    "ack_bunch_max": ("source", 0.0),
    "compression_factor": ("source", BIN),
    "rtt_min": ("source", 0.0),
    "rtt_median": ("source", BIN),
    "rtt_p95": ("source", BIN),
    "rtt_p99": ("source", BIN),
    # Packets from before the cut are missing, so their retransmissions do not count as such.
    "retransmissions": ("source", 0.02),
    "retransmitted": ("source", 0.02),
    "goodput": ("sink", 0.0),
    "ack_to_data": ("sink", 0.0),
}


class Measured:
    """A run, and its two hosts' captures measured without the run's files."""

    def __init__(self, folder: Path, scratch: Path) -> None:
        self.analysis = Analysis(folder)
        self.run = {name: row["value"] for name, row in metrics(folder)["metrics"].items()}
        run, queues = self.analysis.run, list(self.analysis.queues.values())
        window = run.steady_ns, run.stop_ns
        hosts = [f"{host}-eth0" for host in ("h1", "h2")]
        cut = [within(folder / f"pcap/{h}.pcap.zst", scratch / f"{h}.pcap", window) for h in hosts]
        given = Given(*(view.queue.rate_bit / 1e6 for view in queues))
        self.one = {host: one(path, given) for host, path in zip(hosts, cut, strict=True)}
        self.two = analyse_pair(cut[0], cut[1], one_clock=True)
        packets = min(len(run.select_steady(view.passed.packets)) for view in queues)
        longest = self.analysis.longest_round_trip_ns / (run.stop_ns - run.steady_ns)
        self.edge = max(2 * max(self.run[f"queue_peak.{q}"] for q in self.ways) / packets, longest)

    ways = ("forward", "reverse")

    def of_direction(self, document: dict[str, Any], view: ConnectionView) -> dict[str, Any]:
        """Return the metrics that a document has on a connection's data."""
        wanted = view.connection
        data = f"{wanted.source}:{wanted.source_port}", f"{wanted.destination}:{wanted.port}"
        for flow in document["flows"]:
            for ends, direction in ((data, "forward"), (data[::-1], "backward")):
                if (flow["source"], flow["destination"]) == ends:
                    facts = flow.get("facts", {}).get(direction)
                    return {**flow[direction], "facts": facts}
        raise AssertionError(data)


def one(path: Path, given: Given) -> dict[str, Any]:
    """Measure one capture; without the handshake, which is cut off, its vantage is unknown."""
    found = measure(Capture(path), given)
    np.nan_to_num(found.facts.tap_at, copy=False, nan=0.0)
    return document(found)


def within(path: Path, target: Path, window: tuple[int, int]) -> Path:
    """Write the packets of a capture within a window; a nanosecond pcap."""
    raw = zstandard.ZstdDecompressor().stream_reader(path.open("rb")).read()
    kept, at = [raw[:24]], 24
    while at < len(raw):
        seconds, nanoseconds, size = struct.unpack_from("<III", raw, at)
        if window[0] <= seconds * 10**9 + nanoseconds < window[1]:
            kept.append(raw[at : at + 16 + size])
        at += 16 + size
    target.write_bytes(b"".join(kept))
    return target


@pytest.fixture(scope="module", params=[SMALL, TAHOE], ids=["fixed windows", "Tahoe"])
def measured(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Measured:
    """Make a run of two connections in opposite directions."""
    folder = tmp_path_factory.mktemp("agreement")
    return Measured(run_small(write_experiment(folder, request.param), folder / "r"), folder)


def link_bytes(view: QueueView, frame_bytes: int) -> float:
    """Return the size of a frame on a queue's link."""
    return float(view.queue.service_ns(frame_bytes)) * view.queue.rate_bit / 8e9


def agree(name: str, run: float | None, captures: dict[str, Any], within: float) -> None:
    """Compare a run's value with that of captures; two undefined values agree."""
    found = captures["value"]
    if run is None or found is None:
        assert (run, found) == (None, None), (name, captures)
        return
    assert found == pytest.approx(run, rel=within, abs=within), name


def test_two_captures_are_as_the_run(measured: Measured) -> None:
    """The captures of both hosts give the same queues, ACKs and losses as the run's taps."""
    for way, direction in zip(("a_to_b", "b_to_a"), Measured.ways, strict=True):
        for name, off in FROM_PAIR["queue"].items():
            value = measured.run[f"{name}.{direction}"]
            agree(name, value, measured.two["ways"][way][name], off + measured.edge)
    for name, view in measured.analysis.connections.items():
        found = measured.of_direction(measured.two, view)
        for metric, off in FROM_PAIR["connection"].items():
            agree(metric, measured.run[f"{metric}.{name}"], found[metric], off + measured.edge)
    for name, off in FROM_PAIR["run"].items():
        agree(name, measured.run[name], measured.two["metrics"][name], off + measured.edge)


def test_one_capture_is_as_the_run(measured: Measured) -> None:
    """One host's capture gives the same ACKs and goodput as the run's taps."""
    for name, view in measured.analysis.connections.items():
        ends = {"source": view.connection.source_interface, "sink": view.connection.sink_interface}
        for metric, (tap, off) in FROM_ONE.items():
            found = measured.of_direction(measured.one[ends[tap]], view)[metric]
            agree(metric, measured.run[f"{metric}.{name}"], found, off + measured.edge)


def test_one_capture_counts_frames(measured: Measured) -> None:
    """One capture gives throughput, efficiency and utilisation of frames as captured.

    Frames on the run's links have other sizes; they differ by at most an ACK's relative difference.
    """
    for name, view in measured.analysis.connections.items():
        found = measured.of_direction(measured.one[view.connection.sink_interface], view)
        data = view.segment_frame_bytes / link_bytes(view.forward, view.segment_frame_bytes)
        for metric in ("throughput", "efficiency"):
            value = measured.run[f"{metric}.{name}"]
            agree(metric, value, found[metric], abs(data - 1) + measured.edge)
        ack = view.ack_frame_bytes / link_bytes(view.reverse, view.ack_frame_bytes)
    used = max(measured.run[f"utilisation.{direction}"] for direction in Measured.ways)
    for said in measured.one.values():
        found = said["metrics"]["utilisation"]
        agree("utilisation", used, found, abs(ack - 1) + measured.edge)


def test_one_capture_of_new_data(measured: Measured) -> None:
    """One capture shows compression of ACKs of new data; a run counts duplicate ACKs, too.

    So the shares differ by at most the share of ACKs that acknowledge nothing new.
    """
    for name, view in measured.analysis.connections.items():
        found = measured.of_direction(measured.one[view.connection.source_interface], view)
        old = sum(found[f"acks_{kind}"]["value"] for kind in ("duplicate", "window_update", "old"))
        share = old / found["acks"]["value"]
        agree(
            "acks_compressed",
            measured.run[f"acks_compressed.{name}"],
            found["acks_compressed"],
            share + measured.edge,
        )


def test_the_bound_without_link_headers(measured: Measured) -> None:
    """From one capture, the bound is for IP packets and the mean number of segments per ACK."""
    for name, view in measured.analysis.connections.items():
        found = measured.of_direction(measured.one[view.connection.source_interface], view)
        bound = measured.run[f"compression_factor_bound.{name}"]
        header = link_bytes(view.reverse, view.ack_frame_bytes) / (view.ack_frame_bytes - 14)
        assert found["compression_factor_bound"]["value"] == pytest.approx(
            bound * found["facts"]["segments_per_ack"]["value"], rel=header - 1 + measured.edge
        )


def test_the_period_of_a_steady_oscillation(measured: Measured) -> None:
    """Run and captures find the same period, to within a bin, if the queue is periodic.

    With losses the queue is only nearly periodic, and nearly equal peaks decide the period.
    """
    if not measured.run["congestion_epochs"]:
        for way, direction in zip(("a_to_b", "b_to_a"), Measured.ways, strict=True):
            found = measured.two["ways"][way]["oscillation_period"]["value"]
            bin_s = measured.analysis.longest_round_trip_ns / 64e9
            period_s = measured.run[f"oscillation_period.{direction}"]
            assert found == pytest.approx(period_s, abs=bin_s + 1 / 65536)


def test_the_tap_is_not_the_bottleneck(measured: Measured) -> None:
    """One capture gives no pendulum index, but a metric named after the tap."""
    for said in measured.one.values():
        assert "tap_pendulum_index" in said["metrics"]
        assert "pendulum_index" not in said["metrics"]


# The figures that iperf3 reports equal those of the captures.

# The server identifies a test's connections by a cookie, whose bytes it does not count.
COOKIE_BYTES = 37


def test_iperf3_counts_what_the_captures_hold(tmp_path: Path) -> None:
    """Bytes received and retransmissions are equal in iperf3 and in both hosts' captures."""
    folder = carry_out(EXPERIMENTS / "beyond/iperf3.yml", tmp_path / "results")
    client, server = (
        json.loads((folder / f"programs/{name}.out").read_text())["end"]
        for name in ("client", "server")
    )
    arrived = Run(folder).whole_capture("h2-eth0")
    of_test = np.bincount(arrived.flow, arrived.payload_bytes).argmax()
    data = arrived.where((arrived.flow == of_test) & (arrived.half == 0)).widen()
    received_bytes = in_order_bytes(data) - COOKIE_BYTES
    assert server["sum_received"]["bytes"] == client["sum_sent"]["bytes"] == received_bytes > 4e6
    of_most_packets = analyse(folder / "pcap/h1-eth0.pcap.zst")["flows"][0]
    assert of_most_packets["destination"] == "10.0.2.2:5201"
    sent_again = of_most_packets["forward"]["retransmissions"]["value"]
    assert client["sum_sent"]["retransmits"] == sent_again > 0
