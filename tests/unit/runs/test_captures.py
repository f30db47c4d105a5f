"""Captures in runs: the guest's bytes, compressed."""

import shutil
import signal
import subprocess
import threading
import time
from pathlib import Path

import pytest
from capture_analysis.errors import AnalysisError
from support.synthetic_run import write_run

from twoway.contract.verdicts import Verdicts
from twoway.manifest import read_manifest
from twoway.measure.run_folder import Run
from twoway.report.report import analyse_run, rejudge
from twoway.runs.captures import pack
from twoway.runs.clean import remove_captures


def test_nothing_but_size_changes(tmp_path: Path) -> None:
    """Each capture is replaced by a file that zstd, with its checksum, decompresses to it."""
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


def test_compression_ends_at_once(tmp_path: Path) -> None:
    """Ctrl-C ends the compression of captures between two blocks, however large they are."""
    (tmp_path / "pcap").mkdir()
    for name in ("h1-eth0", "h2-eth0"):
        with (tmp_path / f"pcap/{name}.pcap").open("wb") as file:
            file.truncate(1 << 42)
    main = threading.get_ident()

    def interrupt() -> None:
        while not list(tmp_path.glob("pcap/*.zst")):
            time.sleep(0.001)
        signal.pthread_kill(main, signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        pack(tmp_path)
    thread.join()
    assert (tmp_path / "pcap/h1-eth0.pcap").is_file()


def test_a_run_without_captures_is_whole(tmp_path: Path) -> None:
    """A run without captures and samples is complete; one without samples only is damaged.

    Changed verdicts are written, and a report with other verdicts is removed.
    """
    run = write_run(tmp_path / "by-hand" / "20000101-000030-000000")
    analyse_run(run)
    manifest = read_manifest(run)
    shutil.copytree(run / "sockets", tmp_path / "samples")
    shutil.rmtree(run / "sockets")
    assert manifest.damaged(run)
    shutil.copytree(tmp_path / "samples", run / "sockets")
    remove_captures(run)
    assert not (run / "sockets").exists()
    assert manifest.damaged(run) == []
    with pytest.raises(AnalysisError, match="left out: `twoway run by-hand` makes them again"):
        Run(run).numbers("sockets/tcp-info.csv", "cwnd")
    rejudge(run)
    assert (run / "report.html").is_file()
    (run / "verdicts.json").write_text("{}")
    rejudge(run)
    assert Verdicts.read(run / "verdicts.json").rows == ()
    assert not (run / "report.html").exists()
