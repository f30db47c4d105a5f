"""The files that the guest's tcpdump writes, as the analysis reads them."""

from pathlib import Path

import pytest
import tshark_case
import tshark_fields
import tshark_tracking
from capture_analysis import analyse
from corpus import Specimen
from support.guest.verdicts_of_runs import told


def test_captures_of_a_run_are_as_tshark_says(small_run: Path) -> None:
    """At each tap packets, connections, sequence numbers and round trips equal tshark's."""
    specimens = [Specimen(path.name, path) for path in sorted(small_run.rglob("*.pcap.zst"))]
    assert len(specimens) >= 4
    seen: set[str] = set()
    for case in tshark_case.cases(specimens):
        assert len(case.packets) > 100
        assert not list(tshark_fields.count_differences(case))
        assert not list(tshark_fields.field_differences(case, seen))
        assert not list(tshark_fields.end_differences(case))
        assert not list(tshark_tracking.sequence_differences(case))
        assert not list(tshark_tracking.rtt_differences(case, seen))


def test_a_capture_alone_shows_the_paper(paper_run: Path) -> None:
    """One host's capture of Kalampoukas's symmetric case has his bunches, factor, cycle and rate.

    Of a window, 13 ACKs wait and then arrive an ACK's transmission time apart, 9180/40 closer than
    data; the histogram's bins are 1/128 wide; the capture includes the start-up.
    """
    found = analyse(paper_run / "pcap/h1-eth0.pcap.zst")["flows"][0]
    forward = {name: metric["value"] for name, metric in found["forward"].items()}
    assert found["facts"]["forward"]["vantage"]["value"] == "near the data sender"
    assert forward["ack_bunch_max"] == 13
    assert forward["compression_factor"] == pytest.approx(9180 / 40, rel=1 / 128)
    assert forward["efficiency"] == pytest.approx(0.651, abs=0.002)
    assert forward["train_cycle"] == pytest.approx(0.0241155, rel=1 / 128)


def test_a_verdict_alone_is_not_against_both(paper_run: Path) -> None:
    """ACKs that both captures show as compressed are "bunched" in one host's, not "spaced"."""
    assert list(told(paper_run)) == [("compressed", "bunched")] * 2
