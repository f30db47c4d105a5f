"""`twoway report`: its files, output and exit code."""

import errno
import json
import re
from pathlib import Path

import pytest
from capture_analysis.errors import AnalysisError
from support.running import ROOT
from support.synthetic_run import claim, edit_manifest, finding, prediction, write_run
from support.warm_command import twoway

from twoway.commands.report import report_on
from twoway.errors import TwowayError
from twoway.report import report
from twoway.report.paper_text import cells
from twoway.report.report import analyse_run

# Results of the run made by hand.
FLOWS = [
    "flow    Mbit/s  retrans, %  queue mean  queue p95  rtt min  rtt p50  rtt p95, ms",
    "first     1.98       8.333       0.585          3     2.55     4.95         5.04",
    "second    1.26           0        0.67          5     2.55     3.05          4.4",
]


@pytest.mark.slow
def test_a_run_without_statements_shows_what_came_out(tmp_path: Path) -> None:
    """A report prints a table of flows to standard output, unless --quiet is given."""
    folder = write_run(tmp_path)
    done = twoway("report", folder)
    assert done.stdout.splitlines() == FLOWS
    assert twoway("report", folder, "--quiet").stdout == ""


@pytest.mark.slow
def test_report_of_a_run_that_holds(tmp_path: Path) -> None:
    """A report has the flows under its answer; with --json the document is printed."""
    folder = write_run(tmp_path, [prediction("drops_data.forward", 1)])
    done = twoway("report", folder, "--json")
    assert done.returncode == 0
    assert f"report: {folder}/report.html" in done.stderr
    shown = (folder / "report.html").read_text()
    assert "\n".join(FLOWS) in shown[shown.index('class="answer"') : shown.index('class="plot"')]
    assert not (folder / "figures").exists()
    said = json.loads(done.stdout)
    assert said.pop("verdicts") == json.loads((folder / "verdicts.json").read_text())
    assert said == json.loads((folder / "metrics.json").read_text())
    assert "pass drops_data.forward" in done.stderr
    assert done.stderr.splitlines()[-2:-1] == ["1 prediction: pass"]


@pytest.mark.slow
def test_report_of_a_run_that_fails(tmp_path: Path) -> None:
    """A failure is named on stderr, the report is written, and the status is 1."""
    predictions = [prediction("efficiency.first", 0.5, tolerance=0.1)]
    claims = [claim("drops_ack.reverse", 1), claim("drops_data.forward", 2)]
    folder = write_run(tmp_path, predictions, claims, [finding("drops_data.forward", 3)])
    edit_manifest(folder, lambda m: m["capture_drops"].update({"h1-eth0": 2}))
    done = twoway("report", folder)
    assert done.returncode == 1
    assert done.stdout.splitlines() == FLOWS
    lines = [" ".join(line.split()) for line in done.stderr.splitlines()]
    unsound = "a fidelity check fails"
    assert lines[:-2] == [
        "cannot be told efficiency.first 0.275 measured, 0.5 +- 0.1 predicted by by_hand; "
        + unsound,
        f"cannot be told drops_ack.reverse 1 measured, 1 +- 0 in table 1; {unsound}",
        f"cannot be told drops_data.forward 1 measured, 2 +- 0 in table 1; {unsound}",
        f"cannot be told drops_data.forward 1 measured, 3 +- 0 seen before; {unsound}",
        "FAIL packets dropped by the capture: 2, bound 0",
    ]
    assert lines[-2] == "not to be believed: a fidelity check fails"
    assert (folder / "report.html").is_file()


@pytest.mark.slow
def test_report_of_a_run_that_was_damaged(tmp_path: Path) -> None:
    """A report made before a capture was truncated is removed."""
    folder = write_run(tmp_path)
    analyse_run(folder)
    capture = folder / "pcap/r2-eth1.pcap"
    capture.write_bytes(capture.read_bytes()[:-1])
    with pytest.raises(AnalysisError, match=r"r2-eth1\.pcap: ends inside record"):
        analyse_run(folder)
    left = {path.name for path in folder.iterdir()}
    assert left & {"metrics.json", "verdicts.json", "report.html"} == set()


@pytest.mark.slow
def test_report_that_is_interrupted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C during the analysis prints the command that completes the report."""

    def interrupted(_: Path) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(report, "analyse_run", interrupted)
    with pytest.raises(TwowayError, match=r"^interrupted") as raised:
        report_on(write_run(tmp_path), as_json=False)
    assert "`twoway report " in raised.value.hint
    assert raised.value.exit_code == 130


@pytest.mark.slow
def test_unknown_metric(tmp_path: Path) -> None:
    """A statement on a metric that the run does not have fails and names the metric."""
    folder = write_run(tmp_path, [prediction("efficency.first", 1, tolerance=1)])
    done = twoway("report", folder)
    assert done.returncode == 1
    said = " ".join(done.stderr.split())
    assert "FAIL efficency.first none measured, 1 +- 1 predicted by by_hand; no such metric" in said


@pytest.mark.slow
def test_report_that_cannot_be_written(tmp_path: Path) -> None:
    """A page that cannot be written is an error with the file's name, status 1."""
    folder = write_run(tmp_path)
    (folder / "report.html").mkdir()
    done = twoway("report", folder)
    assert done.returncode == 1
    assert str(folder / "report.html") in done.stderr


@pytest.mark.slow
def test_figures_of_a_run(tmp_path: Path) -> None:
    """The files are listed, each kind of each figure, with its run and its content."""
    folder = write_run(tmp_path)
    done = twoway("figures", "--figure", "queues", "--figure", "overview", folder)
    assert done.returncode == 0, done.stderr
    made = [f"{n}.{kind}" for n in ("overview", "queues") for kind in ("csv", "pdf", "png", "svg")]
    listed = sorted(done.stdout.splitlines())
    assert listed == [str(folder / "figures" / name) for name in sorted([*made, "figures.tex"])]
    assert sorted(map(str, (folder / "figures").iterdir())) == listed
    manifest = json.loads((folder / "manifest.json").read_text())
    for name in ("queues.png", "queues.svg"):
        drawn = (folder / "figures" / name).read_bytes()
        assert b"Packets in each router's queue" in drawn
        assert manifest["identity"].encode() in drawn


@pytest.mark.slow
def test_numbers_of_figures(tmp_path: Path) -> None:
    """With --csv each figure's points are written in the axes' units, and nothing else is."""
    folder = write_run(tmp_path)
    assert twoway("figures", "--csv", folder).returncode == 0
    assert {path.suffix for path in (folder / "figures").iterdir()} == {".csv"}
    rows = (folder / "figures/queues.csv").read_text().splitlines()
    assert rows[0] == 'line,look,"time, s",packets,to'
    lines = dict.fromkeys(row.split(",")[0] for row in rows[1:])
    assert next(iter(lines)) == "forward queue"
    assert max(int(float(row.split(",")[3])) for row in rows[1:] if "forward queue" in row) == 4


@pytest.mark.slow
def test_figures_of_no_run(tmp_path: Path) -> None:
    """A folder without a finished run is a usage error."""
    done = twoway("figures", tmp_path)
    assert done.returncode == 2
    assert "neither a finished run" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("content", "sentence"), [("{", "not JSON"), ('{"schema": 99}', "not of schema 4 but 99: ")]
)
def test_damaged_manifest(tmp_path: Path, content: str, sentence: str) -> None:
    """A manifest that cannot be read is named, and nothing is written."""
    (tmp_path / "manifest.json").write_text(content)
    done = twoway("report", tmp_path)
    assert done.returncode == 1
    assert f"{tmp_path}/manifest.json: {sentence}" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["manifest.json"]


@pytest.mark.slow
def test_changed_artifact(tmp_path: Path) -> None:
    """A run with a file that changed after its end is not analysed; the error names the file."""
    folder = write_run(tmp_path)
    digests = {"sockets/queues.csv": "0" * 64}
    edit_manifest(folder, lambda manifest: manifest.update(digests=digests))
    done = twoway("report", folder)
    assert done.returncode == 1
    assert f"{folder}: missing or changed since the run: sockets/queues.csv" in done.stderr
    assert not (folder / "report.html").exists()


@pytest.mark.slow
def test_a_run_without_statements_has_one_line(tmp_path: Path) -> None:
    """Passed fidelity checks are one line, and no headline repeats them."""
    done = twoway("report", write_run(tmp_path))
    first, last = done.stderr.splitlines()
    assert re.fullmatch(r"pass\s+\d+ fidelity checks", first.strip())
    assert last.startswith("report: ")


# Tables for spreadsheets, and a report that does not fit on the disk.


def test_no_text_is_a_formula() -> None:
    """Texts that a spreadsheet would compute get an apostrophe; numbers and other texts stay."""
    row = ["=cmd|calc!A1", "@SUM(1)", "+x", "-x", "\t=1", "\r=1", "-1.5", "+2e-9", -3.5, "a=b", ""]
    assert cells(row)[:6] == ["'=cmd|calc!A1", "'@SUM(1)", "'+x", "'-x", "'\t=1", "'\r=1"]
    assert cells(row)[6:] == row[6:]


def test_a_full_disk_in_the_analysis(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An analysis that does not fit on the disk names the run, and how to complete it."""

    def full(_: Path) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("twoway.report.report.analyse_run", full)
    with pytest.raises(TwowayError, match=f"{tmp_path}: No space left on device") as caught:
        report_on(tmp_path, as_json=False)
    said = f"make room: the run is whole, and `twoway report {tmp_path}` completes it"
    assert caught.value.hint == said


# Templates are read by people, too.

LONGEST = 120


def test_no_line_is_too_long() -> None:
    """Each line of a page's template has at most 120 characters."""
    long = [
        f"{path.name}:{number}"
        for path in sorted((ROOT / "twoway/report/templates").glob("*.j2"))
        for number, line in enumerate(path.read_text("utf-8").splitlines(), start=1)
        if len(line) > LONGEST
    ]
    assert long == []
