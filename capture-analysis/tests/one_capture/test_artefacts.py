"""Artefacts of a capture are counted, and reported with their effect."""

from pathlib import Path

import many_connections
import numpy as np
import pytest
from capture_analysis.flow_table import Seen
from capture_analysis.metrics.bottleneck_rate import NO_DELIVERY
from capture_analysis.one_capture.document import document
from capture_analysis.one_capture.single import measure
from capture_analysis.reading.capture import Capture
from capture_analysis.reading.capture_warnings import warnings_of
from capture_analysis.reading.parsing import Counts
from measured_captures import arriving, capture_of, values
from simulated_path import Connection, Link, Simulation


def bulk(**captured: int) -> list[str]:
    """Return the warnings about a plain transfer that is captured with these options."""
    links = Link(1e7), Link(1e7)
    simulation = Simulation(links, [Connection(segments=300)], "near").run()
    said: list[str] = document(measure(simulation.captured(**captured)))["warnings"]
    return said


def test_plain_captures_have_no_warning() -> None:
    """A capture without artefacts has no warning."""
    assert bulk() == []


def test_coarse_clock() -> None:
    """A clock of 10 ms is reported with its effect."""
    (said,) = bulk(clock_ns=10_000_000)
    assert said.startswith("all times are multiples of 10 ms: shorter gaps are unknown")


def test_one_time() -> None:
    """If all packets have one time, the warning says so, and names no clock."""
    (said,) = bulk(clock_ns=10**18)
    assert said == "all packets have one time: nothing that needs times can be told"


def test_merged_segments() -> None:
    """Packets above the announced MSS are counted and reported as an offload's."""
    (said,) = bulk(merge=4)
    assert "have more payload than a segment can have, merged by an offload" in said
    merged = Simulation((Link(1e7), Link(1e7)), [Connection(segments=300)], "near").run()
    measured = measure(merged.captured(merge=4))
    count = values(measured, 0).segments_merged
    assert said.startswith(f"{count} packets")
    assert count == (measured.capture.whole.payload_bytes > 1460).sum()  # type: ignore[attr-defined]


def test_data_without_an_answer_are_not_delivered() -> None:
    """Data of a burst into a queue were not delivered if no ACK is captured."""
    links = Link(1e7, 5_000_000, 5_000_000), Link(1e7, 5_000_000, 5_000_000)
    transfer = Connection(segments=800, window=200)
    capture = Simulation(links, [transfer], "near").run().captured()
    assert values(measure(capture), 0).delivered_peak < 10
    capture.whole = capture.whole.where(np.flatnonzero(capture.whole.payload_bytes))
    capture.flows.rows["seen"] = Seen.HALF | Seen.SYN
    assert values(measure(capture), 0).delivered_peak == NO_DELIVERY


def test_a_syn_without_an_answer_is_no_capture_of_one_direction(tmp_path: Path) -> None:
    """Connections of one direction are counted without those whose SYNs nothing answered."""
    many_connections.write(tmp_path / "a.pcap", ["fine", "no answer"])
    said = document(measure(Capture(tmp_path / "a.pcap")))["warnings"]
    assert not any("one direction only" in each for each in said)


def test_holes_are_counted_and_named() -> None:
    """Data that is acknowledged and not captured is counted and reported with its effect."""
    capture = capture_of(arriving())
    whole = values(measure(capture), 0)
    assert (whole.unseen_bytes, whole.capture_holes, whole.unseen) == (0, 0, 0)
    segments = np.flatnonzero(capture.whole.payload_bytes)
    capture.whole = capture.whole.where(np.delete(np.arange(len(capture.whole)), segments[300:320]))
    measured = measure(capture)
    found, lost = values(measured, 0), 20 * 1448
    assert (found.unseen_bytes, found.capture_holes) == (lost, 20)
    assert found.unseen == 20 / 600
    assert found.payload + lost == whole.payload
    (said,) = document(measured)["warnings"]
    assert said.startswith(f"{lost} bytes are acknowledged that the capture lacks, at 20 places")


def test_bytes_that_the_capture_lacks_are_not_delivered_at_once() -> None:
    """If a capture stops for a while, the ACK behind the gap raises no rate: the link's holds."""
    link = Link(1e7, 5_000_000, 5_000_000, buffer_bytes=60_000)
    transfer = Connection(segments=1500, window=200, avoids=True, sacks=True, announced=400)
    capture = Simulation((link, Link(1e7)), [transfer], "near").run().captured()
    rows = np.arange(len(capture.whole))
    kept = np.delete(rows, np.arange(200) + len(rows) // 2)
    capture.whole = capture.whole.where(kept)
    found = values(measure(capture), 0)
    assert found.unseen_bytes > 100_000
    assert found.delivered_peak < 10.05
    assert found.bottleneck_rate == pytest.approx(10, rel=0.01)


def test_fragments_are_the_reason_of_holes(monkeypatch: pytest.MonkeyPatch) -> None:
    """If IP packets were fragmented, the warning of missing bytes names the fragments."""
    capture = capture_of(arriving())
    capture.whole.payload_bytes[capture.whole.payload_bytes > 0] -= 100
    monkeypatch.setattr(type(capture), "counts", Counts(packets=1200, later_fragments=600))
    (said,) = document(measure(capture))["warnings"]
    assert "of 600 fragments of IP packets behind the first ones the bytes are not counted" in said


def test_several_interfaces_are_named() -> None:
    """Packets of several interfaces are reported."""
    capture = capture_of(arriving())
    capture.whole.interface[::2] = 3
    (said,) = document(measure(capture))["warnings"]
    assert said.startswith("packets of 2 interfaces in one capture")


def test_each_count_has_its_consequence() -> None:
    """Odd times and lengths are counted and reported with their effect on the numbers."""
    odd = Counts(frames=9, beyond_2262=1, encrypted=3, aggregated=2, fraction_beyond=2)
    odd.backward, odd.length_beyond = 3, 4
    for said, part in zip(
        warnings_of(odd, []),
        ("1 frame at a time beyond the year 2262", "3 frames of an encrypted wireless link",
         "2 frames of a wireless link with several packets each",
         "2 packets whose time", "3 packets with an earlier",
         "rates and shares of links are too low"),
        strict=True,
    ):  # fmt: skip
        assert part in said


@pytest.mark.parametrize(("without", "said"), [(5, True), (4, False)])
def test_captures_of_mostly_other_protocols_say_so(without: int, said: bool) -> None:
    """Other protocols are named if they have more packets than TCP and UDP, tunnels aside."""
    counts = Counts(frames=without + 5, packets=4, not_tcp=without + 1, tunnels_gre=1)
    assert any("neither TCP nor UDP" in each for each in warnings_of(counts, [])) == said
