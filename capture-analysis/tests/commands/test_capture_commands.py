"""The commands `metrics` and `flows` on captures, and their lines of progress."""

import json
from pathlib import Path
from typing import Any

import pytest
from capture_analysis import cli
from capture_analysis.cli import ProgressLine, main
from capture_analysis.commands.flows import amount, bottleneck, table
from capture_analysis.commands.measuring import flow_count, positive_rate
from capture_analysis.facts.facts import Evidence
from capture_analysis.metrics.compression_verdict import BUNCHED, verdict_word
from capture_analysis.reading.byte_source import ByteSource
from capture_analysis.reading.capture import Capture
from pcap_files import EPOCH_NS, pcap, tcp_frame
from traffic_generator import Traffic, write

# The commands `metrics` and `flows` on captures.

MS = 1_000_000


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    """Make a handshake, two segments and their ACKs, seen at the sender."""
    back: dict[str, Any] = {
        "source": "10.0.2.2",
        "destination": "10.0.1.2",
        "sport": 5001,
        "dport": 40001,
    }
    frames = [
        (0, tcp_frame(flags="S", seq=100)),
        (10, tcp_frame(flags="SA", seq=500, ack=101, **back)),
        (10, tcp_frame(flags="A", seq=101, ack=501, ip_id=2)),
        (11, tcp_frame(1000, seq=101, ack=501, ip_id=3)),
        (12, tcp_frame(1000, seq=1101, ack=501, ip_id=4)),
        (21, tcp_frame(seq=501, ack=1101, ip_id=2, **back)),
        (22, tcp_frame(seq=501, ack=2101, ip_id=3, **back)),
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
