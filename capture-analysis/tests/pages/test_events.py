"""Events on a page: each has a filter that shows its packets in the original capture."""

import html
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from capture_analysis.cli import main

pytestmark = pytest.mark.slow

Row = tuple[str, str, str]  # time, words and filter


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copy a capture of two transfers in opposite directions."""
    path = tmp_path_factory.mktemp("captures") / "example.pcap.zst"
    return Path(shutil.copy(Path(__file__).with_name(path.name), path))


@pytest.fixture(scope="module")
def rows(capture: Path) -> list[Row]:
    """Return the events of the capture's page."""
    folder = capture.parent / "report"
    assert main(["report", str(capture), "--output", str(folder)]) == 0
    text = (folder / "report.html").read_text()
    assert text.index('<table class="events">') < text.index('class="plot"')
    tables = re.findall(r'<table class="events">(.*?)</table>', text, re.DOTALL)
    cell = r"<td[^>]*>(?:<code[^>]*>)?(.*?)(?:</code>)?</td>"
    return [
        (html.unescape(row[0]), html.unescape(row[1]), html.unescape(row[2]))
        for table in tables
        for row in re.findall(rf"<tr>{cell * 3}</tr>", table)
    ]


def shown(path: Path, display_filter: str, *fields: str) -> list[list[str]]:
    """Return fields of the packets that tshark shows for a filter."""
    wanted = [word for field in fields for word in ("-e", field)]
    command = ["tshark", "-r", str(path), "-Y", display_filter, "-T", "fields", *wanted]
    found = subprocess.run(command, capture_output=True, text=True, check=True)
    return [line.split("\t") for line in found.stdout.splitlines()]


def of_kind(rows: Sequence[Row], words: str) -> list[Row]:
    """Return the events whose words begin with this text; there must be one."""
    found = [row for row in rows if row[1].startswith(words)]
    assert found
    return found


def test_filter_of_a_bunch_shows_its_acks(capture: Path, rows: list[Row]) -> None:
    """A bunch's filter shows as many packets as it has ACKs, without data, from one host.

    The first packet has the event's time.
    """
    for time, words, display_filter in of_kind(rows, "bunch of"):
        fields = ("frame.time_relative", "tcp.len", "ip.src")
        packets = shown(capture, display_filter, *fields)
        assert len(packets) == int(words.split()[2])
        assert {(length, source) for _, length, source in packets} == {("0", packets[0][2])}
        assert float(packets[0][0]) == pytest.approx(float(time), abs=1e-6)


def test_filter_of_an_idle_time_shows_both_ends(capture: Path, rows: list[Row]) -> None:
    """An idle time's filter shows two data packets, at least that time apart."""
    for time, words, display_filter in of_kind(rows, "idle"):
        packets = shown(capture, display_filter, "frame.time_relative", "tcp.len")
        (before, _), (after, _) = packets
        assert all(int(length) > 0 for _, length in packets)
        assert float(after) == pytest.approx(float(time), abs=1e-6)
        assert 1000 * (float(after) - float(before)) >= 0.995 * float(words.split()[1])


def test_events_are_comments_of_annotate(capture: Path, rows: list[Row]) -> None:
    """Each event is a comment of `annotate` on the first or last packet of its filter."""
    copy = capture.parent / "copy.pcapng"
    assert main(["annotate", str(capture), "-o", str(copy)]) == 0
    assert len(rows) > 5
    for _, words, display_filter in rows:
        packets = shown(copy, display_filter, "frame.comment")
        assert words in f"{packets[0][0]},{packets[-1][0]}"
