"""What the guest's tcpdump writes, as the analysis reads it, against what tshark says of it."""

from pathlib import Path

import pytest
import tshark_case
import tshark_fields
import tshark_tracking
from conftest import run_small
from corpus import Specimen

pytestmark = pytest.mark.usefixtures("guest")


def test_captures_of_a_run_are_as_tshark_says(small: Path, tmp_path: Path) -> None:
    """Packets, connections, sequence numbers and round-trip times of every tap are tshark's."""
    folder = run_small(small, tmp_path / "results")
    specimens = [Specimen(path.name, path) for path in sorted(folder.rglob("*.pcap.zst"))]
    assert len(specimens) >= 4
    seen: set[str] = set()
    for case in tshark_case.cases(specimens):
        assert len(case.packets) > 100
        assert not list(tshark_fields.count_differences(case))
        assert not list(tshark_fields.field_differences(case, seen))
        assert not list(tshark_fields.end_differences(case))
        assert not list(tshark_tracking.sequence_differences(case))
        assert not list(tshark_tracking.rtt_differences(case, seen))
