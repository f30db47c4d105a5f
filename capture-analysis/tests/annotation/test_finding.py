"""Notes on simulated transfers: they agree with the metrics, and with a count by hand."""

import html
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from capture_analysis.annotation.finding import Finder
from capture_analysis.annotation.notes import Note, Notes, say
from capture_analysis.cli import main
from capture_analysis.columns import Packets
from capture_analysis.one_capture import single
from capture_analysis.one_capture.single import Given, blocks, measure
from capture_analysis.reading.times import Times
from capture_analysis.tracking import Tracker
from capture_analysis.waiting_times import RECEIVER
from measured_captures import ColumnCapture, values
from simulated_path import Connection, Link, Simulation

GIVEN = Given(10, 10)
MS = 1_000_000
Found = list[tuple[int, list[str]]]


def exchange(loss: float = 0, segments: int = 400) -> ColumnCapture:
    """Simulate two opposite transfers that share a link: ACKs queue behind the other's data."""
    links = Link(1e7, loss=loss), Link(1e7, loss=loss)
    transfers = [
        Connection(window=20, segments=segments, tick_ns=1000),
        Connection(sender=1, window=30, segments=segments, begin_ns=3_000_000, tick_ns=1000),
    ]
    return numbered(Simulation(links, transfers, "near"))


def numbered(simulation: Simulation) -> ColumnCapture:
    """Run a simulation; its frames have numbers from 1."""
    capture = simulation.run().captured()
    capture.whole.frame[:] = np.arange(1, len(capture.whole) + 1)
    return capture


def noted(capture: ColumnCapture, given: Given = GIVEN, most: int = 10_000) -> Found:
    """Return every frame with its notes."""
    notes = Notes(most)
    finder = Finder(notes)
    for block in blocks(capture, Tracker(), Times(), given):
        finder.add(block)
    finder.finish()
    assert notes.full == (len(notes) == most)
    return list(notes.by_frame())


def starting(found: Found, words: str) -> list[tuple[int, str]]:
    """Return the notes that start with some words."""
    return [(frame, text) for frame, texts in found for text in texts if text.startswith(words)]


def ahead(packets: Packets, row: int) -> int:
    """Count the data packets that the data's sender sent back to back before a packet."""
    wide, count = packets.widen(), 0
    sender = wide.half ^ wide.flow  # the second connection begins at the other host
    rows = [n for n in range(row + 1) if sender[n] == sender[row]]
    for before, after in zip(rows[-2::-1], rows[:0:-1], strict=True):
        gap_ns = int(wide.time_ns[after] - wide.time_ns[before])
        if gap_ns > 2 * 800 * int(wide.frame_bytes[after]) or not wide.payload_bytes[before]:
            break
        count += 1
    return count


def test_bunches_agree_with_the_metrics() -> None:
    """Each bunch that the metrics count has a note with its ACKs and the data packets before it."""
    capture = exchange()
    found = starting(noted(capture), "bunch of")
    measured = measure(capture, GIVEN)
    counted = [values(measured, direction) for direction in range(4)]
    assert len(found) == sum(each.ack_bunches for each in counted if hasattr(each, "ack_bunches"))
    assert len(found) > 10
    row_of = {int(frame): row for row, frame in enumerate(capture.whole.frame)}
    behind = [(ahead(capture.whole, row_of[frame]), text) for frame, text in found]
    for count, text in behind:
        assert text.endswith(f" ACKs behind {count} data packets" if count > 1 else "s")
    assert max(behind)[0] > 10


def test_idle_time_has_its_cause() -> None:
    """A sender that fills the receiver's window waits for the receiver once per round trip.

    The first wait is at the end of the ten segments of its first window.
    """
    links = Link(1e8, 20 * MS), Link(1e8, 20 * MS)
    capture = numbered(Simulation(links, [Connection(window=10, segments=100)], "near"))
    capture.whole.window[:] = 10 * 1448
    texts = [text for _, text in starting(noted(capture), "idle")]
    assert [text.partition(": ")[2] for text in texts] == [
        "the congestion window was full",
        *["the receiver's window was full"] * 8,
    ]
    capture.flows.rows["window_scale"][:] = 14
    assert starting(noted(capture), "idle")[0][1].endswith(": the congestion window was full")
    capture.flows.rows["seen"][:] &= 3
    assert starting(noted(capture), "idle")[0][1].endswith(": a window was full")


def test_retransmissions_agree_with_the_metrics() -> None:
    """Each retransmission has a note of its kind, as the metrics count them."""
    capture = exchange(loss=0.02)
    kinds = Counter(text.split()[2].strip(",:") for _, text in starting(noted(capture), "retrans"))
    sent = values(measure(capture, GIVEN), 0)
    assert kinds["RACK"] == sent.retransmissions_fast > 0
    assert kinds["time-out"] == sent.retransmissions_timeout


def test_queue_starts_and_ends() -> None:
    """A queue starts where a window fills a link, and is empty before it starts again."""
    links = Link(1e8, 20 * MS), Link(1e9, 20 * MS)
    writer = Connection(window=400, segments=1200, write=400, write_ns=500 * MS)
    found = noted(numbered(Simulation(links, [writer], "near")), Given(100, 1000))
    turns = [text.split(":")[0] for _, text in starting(found, "queue")]
    assert turns[:3] == ["queue starts", "queue is empty", "queue starts"]
    assert all(one != other for one, other in pairwise(turns))


@pytest.mark.parametrize("packets", [1, 7])
def test_blocks_do_not_matter(packets: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The notes do not depend on where blocks end."""
    capture = exchange(loss=0.02, segments=100)
    expected = noted(capture)
    monkeypatch.setattr(single, "BLOCK_PACKETS", packets)
    assert noted(capture) == expected


def test_most_notes() -> None:
    """Notes beyond the limit are left out."""
    assert len(noted(exchange(), most=7)) == 7


def test_words() -> None:
    """Numbers in notes have three digits, and a single packet is in the singular."""
    assert say(Note.BUNCH, 13, 1) == "bunch of 13 ACKs behind 1 data packet"
    assert say(Note.BUNCH, 3, 0) == "bunch of 3 ACKs"
    assert say(Note.IDLE, 34_123_456, RECEIVER) == "idle 34.1 ms: the receiver's window was full"
    assert say(Note.IDLE, 12_345_678_901, RECEIVER).startswith("idle 12346 ms")
    expected = "queue starts: round trip 24.1 ms, 7.3 ms above the least"
    assert say(Note.QUEUE, 24_100_000, 16_800_000) == expected
    assert say(Note.NO_QUEUE, 16_800_000, 0) == "queue is empty: round trip 16.8 ms"


# Events on a page: each has a filter that shows its packets in the original capture.

EXAMPLE = Path(__file__).parents[1] / "pages" / "example.pcap.zst"
Row = tuple[str, str, str]  # time, words and filter


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copy a capture of two transfers in opposite directions."""
    return Path(shutil.copy(EXAMPLE, tmp_path_factory.mktemp("captures")))


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


@pytest.mark.slow
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


@pytest.mark.slow
def test_filter_of_an_idle_time_shows_both_ends(capture: Path, rows: list[Row]) -> None:
    """An idle time's filter shows two data packets, at least that time apart."""
    for time, words, display_filter in of_kind(rows, "idle"):
        packets = shown(capture, display_filter, "frame.time_relative", "tcp.len")
        (before, _), (after, _) = packets
        assert all(int(length) > 0 for _, length in packets)
        assert float(after) == pytest.approx(float(time), abs=1e-6)
        assert 1000 * (float(after) - float(before)) >= 0.995 * float(words.split()[1])


@pytest.mark.slow
def test_events_are_comments_of_annotate(capture: Path, rows: list[Row]) -> None:
    """Each event is a comment of `annotate` on the first or last packet of its filter."""
    copy = capture.parent / "copy.pcapng"
    assert main(["annotate", str(capture), "-o", str(copy)]) == 0
    assert len(rows) > 5
    for _, words, display_filter in rows:
        packets = shown(copy, display_filter, "frame.comment")
        assert words in f"{packets[0][0]},{packets[-1][0]}"
