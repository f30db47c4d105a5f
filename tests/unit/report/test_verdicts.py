"""What the commands say of a run on a real clock: what fails, what cannot be told, what exits."""

from pathlib import Path
from typing import Any

import pytest
from synthetic_run import edit_json, expectation, write_run

from twoway.commands.reporting import report_on
from twoway.measure.analysis import Analysis
from twoway.measure.document import compute
from twoway.sweeps.sweep import missed

pytestmark = pytest.mark.slow

NOTHING = "no expectation can be told on this run's clock"
# The queue's peak is 4, and off by up to 1 by itself.
MISSED = expectation("queue_peak.forward", 6, 0)
UNTOLD = expectation("queue_peak.forward", 5, 0)
MET = expectation("queue_peak.forward", 5, 1)


def real_time(folder: Path, *expect: dict[str, Any]) -> Path:
    """The run by hand, as if on a machine whose clock went on."""
    write_run(folder, expect)
    edit_json(folder / "manifest.json", lambda m: m.update(clock_source="host"))
    return folder


@pytest.mark.parametrize(
    ("expect", "status", "marks"),
    [
        ([MET], 0, ["pass"]),
        ([MET, UNTOLD], 0, ["pass", "?"]),
        ([MET, MISSED], 1, ["pass", "FAIL"]),
        ([UNTOLD], 1, ["?", "FAIL"]),
    ],
)
def test_exit_codes(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    expect: list[dict[str, Any]],
    status: int,
    marks: list[str],
) -> None:
    """A miss and a run that tells nothing exit with 1; what cannot be told alone does not."""
    assert report_on(real_time(tmp_path, *expect), as_json=False) == status
    said = capsys.readouterr().err.splitlines()
    assert [line.split()[0] for line in said[: len(marks)]] == marks
    assert any(NOTHING in line for line in said) == (expect == [UNTOLD])


def test_what_a_sweep_says(tmp_path: Path) -> None:
    """A point's misses are its failed rows, or that nothing of it can be told."""

    def said(name: str, *expect: dict[str, Any]) -> list[str]:
        return list(missed(compute(Analysis(real_time(tmp_path / name, *expect)))))

    assert said("met", MET, UNTOLD) == []
    (missed_line,) = said("missed", MET, MISSED)
    assert missed_line.startswith("queue_peak.forward ")
    assert " 4 measured, 6 +- 0 theory" in missed_line
    assert said("untold", UNTOLD) == [f"{NOTHING} (vm/README.md)"]
