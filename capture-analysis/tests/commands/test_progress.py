"""The line that shows the progress of long work."""

from pathlib import Path

import pytest
from capture_analysis.commands import progress
from capture_analysis.reading.byte_source import ByteSource
from capture_analysis.reading.capture import Capture
from traffic_generator import Traffic, write


@pytest.fixture
def line(monkeypatch: pytest.MonkeyPatch) -> progress.ProgressLine:
    """Make a line that is shown without delay."""
    monkeypatch.setattr(progress, "_PATIENCE_S", 0)
    monkeypatch.setattr(progress, "_EVERY_S", 0)
    watching = progress.ProgressLine()
    monkeypatch.setattr(ByteSource, "watch", watching)
    return watching


def test_progress_line_grows_and_goes(
    line: progress.ProgressLine, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The line names the capture, grows to 100 % in each pass, and is erased at the end."""
    path = tmp_path / "near.pcap"
    write(Traffic(flows=2, round_packets=20_000), 30_000, {"near": path})
    for _ in range(2):
        for _ in Capture(path).chunks():
            pass
        said = capsys.readouterr().err.split("\r")
        assert said[1].startswith("near.pcap: ")
        assert " of 3 MB read, " in said[1]
        assert said[-1].startswith("near.pcap: 100% of 3 MB read, 0 s left")
    line.clear()
    assert capsys.readouterr().err == "\r\033[K"


def test_short_work_prints_no_progress(
    line: progress.ProgressLine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Short work prints nothing."""
    monkeypatch.setattr(progress, "_PATIENCE_S", 3600)
    line(Path(__file__), 1)
    line.clear()
    assert capsys.readouterr().err == ""
