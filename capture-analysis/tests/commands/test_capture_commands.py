"""The commands `metrics`, `flows` and `match` on captures, and their lines of progress."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.csv
import pyarrow.parquet
import pytest
from capture_analysis import cli
from capture_analysis.cli import ProgressLine, main
from capture_analysis.commands.flows import amount, bottleneck, table
from capture_analysis.commands.measuring import flow_count, positive_rate
from capture_analysis.facts.facts import Evidence
from capture_analysis.metrics.compression_verdict import BUNCHED, verdict_word
from capture_analysis.reading.byte_source import ByteSource
from capture_analysis.reading.capture import Capture
from pcap_files import EPOCH_NS, answer_frame, pcap, tcp_frame
from traffic_generator import Traffic, write

# The commands `metrics` and `flows` on captures.

MS = 1_000_000


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    """Make a handshake, two segments and their ACKs, seen at the sender."""
    frames = [
        (0, tcp_frame(flags="S", seq=100)),
        (10, answer_frame(flags="SA", seq=500, ack=101)),
        (10, tcp_frame(flags="A", seq=101, ack=501, ip_id=2)),
        (11, tcp_frame(1000, seq=101, ack=501, ip_id=3)),
        (12, tcp_frame(1000, seq=1101, ack=501, ip_id=4)),
        (21, answer_frame(seq=501, ack=1101, ip_id=2)),
        (22, answer_frame(seq=501, ack=2101, ip_id=3)),
    ]
    path = tmp_path / "small.pcap"
    path.write_bytes(pcap((EPOCH_NS + at * MS, frame) for at, frame in frames))
    return path


def test_metrics_prints_the_document(capture: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The document has the capture's description, its connections, and their metrics."""
    assert main(["metrics", str(capture)]) == 0
    found = json.loads(capsys.readouterr().out)
    flow = found["flows"][0]
    assert flow["name"] == "10.0.1.2:40001 > 10.0.2.2:5001"
    assert flow["facts"]["data"] == "forward"
    assert flow["facts"]["forward"]["vantage"]["value"] == "near the data sender"
    assert flow["forward"]["rtt_min"] == {"value": 10.0, "unit": "ms"}
    assert flow["forward"]["goodput"] == {"value": pytest.approx(16 / 11), "unit": "Mbit/s"}


def test_rates_given(capture: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Rates on the command line replace those that would be estimated."""
    assert main(["metrics", str(capture), "--rate-mbit", "16", "--ack-rate-mbit", "1.5"]) == 0
    facts = json.loads(capsys.readouterr().out)["flows"][0]["facts"]
    assert facts["forward"]["bottleneck"]["value"] == 16
    assert facts["backward"]["bottleneck"]["value"] == 1.5
    assert facts["forward"]["bottleneck"]["source"] == "given"


def test_flows_prints_a_line_per_connection(
    capture: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The table has a line for each connection."""
    assert main(["flows", str(capture)]) == 0
    heading, line = capsys.readouterr().out.splitlines()
    assert heading.split()[0] == "connection"
    cells = (
        "10.0.1.2:40001 > 10.0.2.2:5001 7 2 kB 0.022 s 10.000 ms - - fine 10.000 ms 10.000 ms "
        "-> sender - 1.45 Mbit/s 0.000% application - cannot tell"
    )
    assert " ".join(line.split()) == cells


@pytest.mark.parametrize("command", ["metrics", "flows"])
def test_no_tcp(command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A capture without a TCP packet is refused with a sentence."""
    path = tmp_path / "empty.pcap"
    path.write_bytes(pcap([]))
    assert main([command, str(path)]) == 2
    assert "no TCP packet in 0 frames" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["0", "-1", "fast", "nan", "inf", ""])
def test_rates_must_be_rates(text: str) -> None:
    """An invalid rate is refused, and the error says what it must be."""
    from argparse import ArgumentTypeError

    with pytest.raises(ArgumentTypeError, match="must be a rate in Mbit/s"):
        positive_rate(text)
    assert positive_rate("0.5") == 0.5


def test_flow_count() -> None:
    """The number of connections may be 0, and a negative number is refused."""
    from argparse import ArgumentTypeError

    assert flow_count("0") == 0
    with pytest.raises(ArgumentTypeError, match="got '-1'"):
        flow_count("-1")


def test_first_column_is_flush_left() -> None:
    """The first column is flush left, the others flush right."""
    assert table([("a", "bb"), ("ccc", "d")]) == "a    bb\nccc   d\n"


def test_amounts_and_verdicts_in_words() -> None:
    """Amounts have three digits, guesses one digit; verdicts are words."""
    assert [amount(n, "B") for n in (12, 1234, 106_000_000)] == ["12 B", "1.23 kB", "106 MB"]
    rates = [bottleneck(1_234_567, each) for each in (Evidence.MEASURED, Evidence.GUESSED)]
    assert rates == ["~1.23 Mbit/s", "?1 Mbit/s"]
    words = [verdict_word(each) for each in ("no rate", None, BUNCHED, 0, 1)]
    assert words == ["cannot tell", "cannot tell", "bunched", "spaced", "compressed"]


# The line that shows the progress of long work.


@pytest.fixture
def line(monkeypatch: pytest.MonkeyPatch) -> ProgressLine:
    """Make a line that is shown without delay."""
    monkeypatch.setattr(cli, "_PATIENCE_S", 0)
    monkeypatch.setattr(cli, "_EVERY_S", 0)
    watching = ProgressLine()
    monkeypatch.setattr(ByteSource, "watch", watching)
    return watching


def test_progress_line_grows_and_goes(
    line: ProgressLine, tmp_path: Path, capsys: pytest.CaptureFixture[str]
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
    line: ProgressLine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Short work prints nothing."""
    monkeypatch.setattr(cli, "_PATIENCE_S", 3600)
    line(Path(__file__), 1)
    line.clear()
    assert capsys.readouterr().err == ""


# The command `match`: two files in, a document and a table out.

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
        ack = answer_frame(destination=source, ack=1500 + 500 * number, ip_id=number + 1)
        frames.append((sent + 2 * DELAY_NS, sent + DELAY_NS, ack))
    return frames


Tap = Callable[[str, Frames, int, int], Path]


@pytest.fixture
def tap(tmp_path: Path) -> Tap:
    """Write the frames that a tap (0 or 1) sees, on a clock with a given offset."""

    def seen_by(name: str, frames: Frames, place: int, offset_ns: int) -> Path:
        path = tmp_path / name
        seen = [((frame[0], frame[1])[place] + offset_ns, frame[2]) for frame in frames]
        path.write_bytes(pcap(sorted(seen, key=lambda frame: frame[0])))
        return path

    return seen_by


def test_the_document(tap: Tap, capsys: pytest.CaptureFixture[str]) -> None:
    """The command prints clock, delays and losses of two files as JSON."""
    a = tap("a.pcap", conversation(), 0, 0)
    lossy = conversation()
    del lossy[20:22]
    b = tap("b.pcap", lossy, 1, HOUR_NS)
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
    tap: Tap, tmp_path: Path, capsys: pytest.CaptureFixture[str], suffix: str
) -> None:
    """Each packet is a row with both times on the first clock; a tap that missed it has null."""
    frames = conversation()
    a, b = tap("a.pcap", frames, 0, 0), tap("b.pcap", frames[:11] + frames[12:], 1, HOUR_NS)
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
    tap: Tap,
    capsys: pytest.CaptureFixture[str],
    source: str,
    first: int,
    last: int,
    sentence: str,
) -> None:
    """Captures without a common packet end the command with the reason, and exit code 2."""
    a = tap("a.pcap", conversation()[:30], 0, 0)
    other = [(x, y, frame) for x, y, frame in conversation(source)[first:last]]
    if source != "10.0.1.2":
        other = [
            (x, y, tcp_frame(7, seq=9, source=source, ip_id=i)) for i, (x, y, _) in enumerate(other)
        ]
    b = tap("b.pcap", other, 1, 0)
    assert main(["match", str(a), str(b)]) == 2
    said = capsys.readouterr().err
    assert sentence in said
    assert f"{a}: 2000-01-01" in said
    assert source in said


def test_no_file(tap: Tap, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A stream, a missing file, a file without TCP and a wrong output name are refused."""
    a = tap("a.pcap", conversation(), 0, 0)
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
