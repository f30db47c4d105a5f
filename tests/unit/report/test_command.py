"""`twoway report`: what it writes, prints and returns."""

import json
from pathlib import Path

import pytest
from running import twoway
from synthetic_run import edit_json, expectation, write_run

pytestmark = pytest.mark.slow


def test_report_of_a_run_that_holds(tmp_path: Path) -> None:
    """A report goes beside the run, and the status is 0; with --json the document is printed."""
    folder = write_run(tmp_path, [expectation("drops_data.forward", 1, 0)])
    done = twoway("report", folder, "--json")
    assert done.returncode == 0
    assert f"report: {folder}/report.html" in done.stderr
    assert (folder / "report.html").is_file()
    assert len(list((folder / "figures").iterdir())) == 18
    document = json.loads((folder / "metrics.json").read_text())
    assert document["pass"] is True
    assert json.loads(done.stdout) == document


def test_report_of_a_run_that_fails(tmp_path: Path) -> None:
    """What does not hold is named on stderr, the report is written, and the status is 1."""
    expect = [expectation("efficiency.first", 0.5, 0.1), expectation("drops_ack.reverse", 1, 0)]
    folder = write_run(tmp_path, expect)
    edit_json(folder / "manifest.json", lambda m: m["capture_drops"].update({"h1-eth0": 2}))
    done = twoway("report", folder)
    assert done.returncode == 1
    assert done.stdout == ""
    failed = [line.split() for line in done.stderr.splitlines() if line.startswith("FAIL")]
    assert failed == [
        ["FAIL", "efficiency.first", "0.275", "measured,", "0.5", "+-", "0.1", "theory"],
        ["FAIL", "packets", "dropped", "by", "the", "capture:", "2,", "bound", "0"],
    ]
    assert (folder / "report.html").is_file()


def test_unknown_metric(tmp_path: Path) -> None:
    """A run that expects an unknown metric has no report, and the status is 1."""
    folder = write_run(tmp_path, [expectation("efficency.first", 1, 1)])
    done = twoway("report", folder)
    assert done.returncode == 1
    assert 'expect: no metric "efficency.first"; there are: ' in done.stderr
    assert not (folder / "metrics.json").exists()


def test_report_that_cannot_be_written(tmp_path: Path) -> None:
    """A folder in which nothing can be written is an error with the file's name, status 1."""
    folder = write_run(tmp_path)
    (folder / "figures").write_text("in the way")
    done = twoway("report", folder)
    assert done.returncode == 1
    assert str(folder / "figures") in done.stderr


@pytest.mark.parametrize(
    ("content", "sentence"), [("{", "not JSON"), ('{"schema": 99}', "not of schema 2 but 99: ")]
)
def test_damaged_manifest(tmp_path: Path, content: str, sentence: str) -> None:
    """A manifest that cannot be read is named, and nothing is written."""
    (tmp_path / "manifest.json").write_text(content)
    done = twoway("report", tmp_path)
    assert done.returncode == 1
    assert f"{tmp_path}/manifest.json: {sentence}" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["manifest.json"]
