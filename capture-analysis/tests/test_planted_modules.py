"""Commands in a stranger's folder, which has a module of each name."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pcap_files import EPOCH_NS, pcap, tcp_frame
from planted_modules import plant_modules, planted_that_ran


@pytest.mark.parametrize(
    "words",
    [
        "metrics .",  # on Dask's workers
        "metrics --workers 2 a.pcap",
        "flows a.pcap",
        "report a.pcap",
        "match a.pcap b.pcap",
    ],
)
def test_no_module_beside_the_captures_runs(tmp_path: Path, words: str) -> None:
    """A command runs no Python file of the folder in which a user starts it."""
    plant_modules(tmp_path)
    back: dict[str, Any] = {
        "source": "10.0.2.2",
        "destination": "10.0.1.2",
        "sport": 5001,
        "dport": 40001,
    }
    for name, delay_ms in (("a", 0), ("b", 20)):
        frames = []
        for number in range(30):
            data = tcp_frame(500, seq=1000 + 500 * number, ip_id=number + 1)
            ack = tcp_frame(ack=1500 + 500 * number, ip_id=number + 1, **back)
            frames += [(100 * number + delay_ms, data), (100 * number + 40 - delay_ms, ack)]
        content = pcap((EPOCH_NS + at_ms * 1_000_000, frame) for at_ms, frame in frames)
        (tmp_path / f"{name}.pcap").write_bytes(content)
    program = Path(sys.executable).with_name("capture-analysis")
    done = subprocess.run(
        [program, *words.split()], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert planted_that_ran(tmp_path) == []
    assert done.returncode == 0, done.stderr
