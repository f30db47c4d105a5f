"""Captures as runs keep them: the guest's bytes, compressed."""

import subprocess
from pathlib import Path

from twoway.runs.captures import pack


def test_nothing_but_size_changes(tmp_path: Path) -> None:
    """Each capture is replaced by one that zstd, which checks its checksum, makes the same of."""
    (tmp_path / "pcap").mkdir()
    written = {"r1-eth0": b"a capture" * 100_000, "r1-eth1": b""}
    for name, content in written.items():
        (tmp_path / f"pcap/{name}.pcap").write_bytes(content)
    pack(tmp_path)
    packed = sorted((tmp_path / "pcap").iterdir())
    assert [path.name for path in packed] == ["r1-eth0.pcap.zst", "r1-eth1.pcap.zst"]
    for path, content in zip(packed, written.values(), strict=True):
        done = subprocess.run(["zstd", "-dc", path], capture_output=True, check=True)
        assert done.stdout == content
        listed = subprocess.run(["zstd", "-lv", path], capture_output=True, text=True, check=True)
        assert "Check: XXH64" in listed.stdout
