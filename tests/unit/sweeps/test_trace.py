"""A trace proves that the run with the probe is the run."""

from hashlib import sha256
from pathlib import Path

import pytest
from zstandard import compress

from twoway.errors import RunError
from twoway.sweeps.trace import equal_captures


def test_a_probe_that_changes_a_byte_has_no_answer(tmp_path: Path) -> None:
    """Equal captures have their SHA-256; one other byte in one of them is an error."""
    runs = tmp_path / "one", tmp_path / "other"
    for run in runs:
        (run / "pcap").mkdir(parents=True)
        (run / "pcap/h1-eth0.pcap.zst").write_bytes(compress(b"packets"))
    digest = sha256(b"packets").hexdigest()
    assert equal_captures(*runs, ["h1-eth0"]) == {"h1-eth0": digest}
    (runs[1] / "pcap/h1-eth0.pcap.zst").write_bytes(compress(b"pockets"))
    with pytest.raises(RunError, match=r"h1-eth0: the run with the probe has other packets"):
        equal_captures(*runs, ["h1-eth0"])
