"""The figures that iperf3 reports equal those of the captures."""

import json
from pathlib import Path

import numpy as np
import pytest
from capture_analysis import analyse
from support.runs import carry_out

from twoway.measure.run_folder import Run
from twoway.measure.throughput import in_order_bytes
from twoway.paths import EXPERIMENTS

pytestmark = pytest.mark.usefixtures("guest")

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
    data = arrived.where((arrived.flow == of_test) & (arrived.half == 0)).widened()
    received_bytes = in_order_bytes(data) - COOKIE_BYTES
    assert server["sum_received"]["bytes"] == client["sum_sent"]["bytes"] == received_bytes > 4e6
    of_most_packets = analyse(folder / "pcap/h1-eth0.pcap.zst")["flows"][0]
    assert of_most_packets["destination"] == "10.0.2.2:5201"
    sent_again = of_most_packets["forward"]["retransmissions"]["value"]
    assert client["sum_sent"]["retransmits"] == sent_again > 0
