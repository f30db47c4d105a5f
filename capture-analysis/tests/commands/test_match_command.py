"""The command `match`: two files in, a document and a table out."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.csv
import pyarrow.parquet
import pytest
from capture_analysis.cli import main
from pcap_files import EPOCH_NS, pcap, tcp_frame

HOUR_NS = 3_600_000_000_000
DELAY_NS = 20_000_000
SEGMENTS = 30

Frames = list[tuple[int, int, Any]]


def conversation(source: str = "10.0.1.2") -> Frames:
    """Make segments and their ACKs: time at both taps, and frame."""
    frames: Frames = []
    for number in range(SEGMENTS):
        sent = EPOCH_NS + number * 100_000_000
        data = tcp_frame(500, seq=1000 + 500 * number, ip_id=number + 1, source=source)
        frames.append((sent, sent + DELAY_NS, data))
        ack = tcp_frame(
            source="10.0.2.2",
            destination=source,
            sport=5001,
            dport=40001,
            ack=1500 + 500 * number,
            ip_id=number + 1,
        )
        frames.append((sent + 2 * DELAY_NS, sent + DELAY_NS, ack))
    return frames


Write = Callable[[str, Frames, int, int], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write the frames that a tap (0 or 1) sees, on a clock with a given offset."""

    def write_(name: str, frames: Frames, tap: int, offset_ns: int) -> Path:
        path = tmp_path / name
        seen = [((frame[0], frame[1])[tap] + offset_ns, frame[2]) for frame in frames]
        path.write_bytes(pcap(sorted(seen, key=lambda frame: frame[0])))
        return path

    return write_


def test_the_document(write: Write, capsys: pytest.CaptureFixture[str]) -> None:
    """The command prints clock, delays and losses of two files as JSON."""
    a = write("a.pcap", conversation(), 0, 0)
    lossy = conversation()
    del lossy[20:22]
    b = write("b.pcap", lossy, 1, HOUR_NS)
    assert main(["match", str(a), str(b)]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["matched"]["packets"] == 2 * SEGMENTS - 2
    assert found["clock"]["offset_ns"] == HOUR_NS
    assert found["clock"]["uncertainty_ns"] == DELAY_NS
    (flow,) = found["flows"]
    assert flow["forward"]["data_delay_min"]["value"] == DELAY_NS
    assert flow["forward"]["data_missed"]["value"] == 1
    assert flow["forward"]["acks_missed_first"]["value"] == 1
    assert flow["backward"] is None


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_match_writes_a_row_per_packet(
    write: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str], suffix: str
) -> None:
    """Each packet is a row with both times on the first clock; a tap that missed it has null."""
    frames = conversation()
    a, b = write("a.pcap", frames, 0, 0), write("b.pcap", frames[:11] + frames[12:], 1, HOUR_NS)
    target = tmp_path / f"pairs.{suffix}"
    assert main(["match", str(a), str(b), "--pairs", str(target)]) == 0
    capsys.readouterr()
    read = pyarrow.csv.read_csv if suffix == "csv" else pyarrow.parquet.read_table
    rows = read(target).to_pylist()
    assert len(rows) == 2 * SEGMENTS
    both = [row for row in rows if row["seen"] == "both"]
    assert {row["delay_ns"] for row in both} == {DELAY_NS}
    assert {abs(row["b_ns"] - row["a_ns"]) for row in both} == {DELAY_NS}
    (alone,) = (row for row in rows if row["seen"] == "a")
    assert (alone["b_ns"], alone["kind"], alone["passes_first"]) == (None, "ack", "b")
    assert list(tmp_path.glob(".*")) == []


@pytest.mark.parametrize(
    ("source", "first", "last", "sentence"),
    [("10.0.1.9", 0, 60, "no common connection"), ("10.0.1.2", 30, 60, "do not overlap")],
)
def test_nothing_in_common(  # noqa: PLR0917 - what each case is
    write: Write,
    capsys: pytest.CaptureFixture[str],
    source: str,
    first: int,
    last: int,
    sentence: str,
) -> None:
    """Captures without a common packet end the command with the reason, and exit code 2."""
    a = write("a.pcap", conversation()[:30], 0, 0)
    other = [(x, y, frame) for x, y, frame in conversation(source)[first:last]]
    if source != "10.0.1.2":
        other = [
            (x, y, tcp_frame(7, seq=9, source=source, ip_id=i)) for i, (x, y, _) in enumerate(other)
        ]
    b = write("b.pcap", other, 1, 0)
    assert main(["match", str(a), str(b)]) == 2
    said = capsys.readouterr().err
    assert sentence in said
    assert f"{a}: 2000-01-01" in said
    assert source in said


def test_no_file(write: Write, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A stream, a missing file, a file without TCP and a wrong output name are refused."""
    a = write("a.pcap", conversation(), 0, 0)
    empty = tmp_path / "empty.pcap"
    empty.write_bytes(pcap([]))
    for words, sentence in (
        ([str(a), "-"], "-: is a stream"),
        ([str(tmp_path / "none.pcap"), str(a)], "does not exist"),
        ([str(a), str(empty)], "has no TCP packet"),
        ([str(a), str(a), "--pairs", "pairs.txt"], "must end in .parquet or .csv"),
    ):
        assert main(["match", *words]) == 2
        assert sentence in capsys.readouterr().err
