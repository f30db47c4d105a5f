"""The `capture-analysis` command: what it writes, prints and returns."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from capture_analysis.cli import COMMANDS, main
from capture_analysis.testbed import document
from capture_analysis.testbed.analysis import Analysis
from synthetic_run import edit_json, expectation, write_run


def test_report_of_a_run_that_holds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A report goes beside the run; its path alone is printed, and the status is 0."""
    folder = write_run(tmp_path, [expectation("drops_data.forward", 1, 0)])
    assert main(["report", str(folder)]) == 0
    assert capsys.readouterr() == (f"{folder}/report.html\n", "")
    assert (folder / "report.html").is_file()
    assert len(list((folder / "figures").iterdir())) == 18
    assert json.loads((folder / "metrics.json").read_text())["pass"] is True


def test_report_of_a_run_that_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What does not hold is named on stderr, the report is written, and the status is 1."""
    expect = [expectation("efficiency.first", 0.5, 0.1), expectation("drops_ack.reverse", 1, 0)]
    folder = write_run(tmp_path, expect)
    edit_json(folder / "manifest.json", lambda m: m["capture_drops"].update({"h1-eth0": 2}))
    assert main(["report", str(folder)]) == 1
    assert capsys.readouterr() == (
        f"{folder}/report.html\n",
        (
            "capture-analysis: efficiency.first: measured 0.275, expected 0.5 +- 0.1 (theory)\n"
            "capture-analysis: packets dropped by the capture: 2, bound 0\n"
        ),
    )
    assert (folder / "report.html").is_file()


def test_metrics(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`metrics` prints what metrics.json would hold, and writes nothing."""
    folder = write_run(tmp_path)
    before = sorted(folder.rglob("*"))
    assert main(["metrics", str(folder)]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out) == document.compute(Analysis(folder))
    assert err == ""
    assert sorted(folder.rglob("*")) == before


def test_metrics_of_a_run_that_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`metrics` leaves the verdict to its reader: the status is 0, the document says it."""
    folder = write_run(tmp_path, [expectation("efficiency.first", 0.5, 0.1)])
    assert main(["metrics", str(folder)]) == 0
    assert json.loads(capsys.readouterr().out)["pass"] is False


@pytest.mark.parametrize(
    ("command", "missing"),
    [
        ("report", "no manifest.json: not a finished run"),
        (
            "metrics",
            (
                "neither a run (no manifest.json) nor captures "
                "(.pcap, .pcapng, .cap, compressed or not) in it"
            ),
        ),
    ],
)
def test_not_a_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str, missing: str
) -> None:
    """A folder with nothing to analyse is one line on stderr, and the status is 2."""
    assert main([command, str(tmp_path)]) == 2
    assert capsys.readouterr() == ("", f"capture-analysis: {tmp_path}: {missing}\n")
    assert list(tmp_path.iterdir()) == []


def test_unknown_metric(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A run that expects an unknown metric has no report, and the status is 2."""
    folder = write_run(tmp_path, [expectation("efficency.first", 1, 1)])
    assert main(["report", str(folder)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith('capture-analysis: expect: no metric "efficency.first"; there are: ')
    assert not (folder / "metrics.json").exists()


def test_report_that_cannot_be_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A folder in which nothing can be written is an error with the file's name, status 2."""
    folder = write_run(tmp_path)
    (folder / "figures").write_text("in the way")
    assert main(["report", str(folder)]) == 2
    assert str(folder / "figures") in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ([], "the following arguments are required: COMMAND"),
        (["report"], "the following arguments are required: CAPTURE"),
        (["draw", "x"], "invalid choice: 'draw'"),
        (["report", "x", "y", "z"], "unrecognized arguments: z"),
    ],
)
def test_bad_usage(
    capsys: pytest.CaptureFixture[str], arguments: list[str], complaint: str
) -> None:
    """A command line that makes no sense says why, and the status is 2."""
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    assert stopped.value.code == 2
    assert complaint in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["--help"], *([name, "--help"] for name in COMMANDS)])
def test_help(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    """Help goes to stdout and tells what each exit status means."""
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    assert stopped.value.code == 0
    assert "exit status: 0 if" in capsys.readouterr().out


def test_as_a_process(tmp_path: Path) -> None:
    """The status is the process's own."""
    done = subprocess.run(
        [sys.executable, "-m", "capture_analysis.cli", "metrics", str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.endswith("compressed or not) in it\n")
