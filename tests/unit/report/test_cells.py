"""Tables for spreadsheets, and a report that does not fit on the disk."""

import errno
from pathlib import Path

import pytest

from twoway.commands import reporting
from twoway.errors import TwowayError
from twoway.report.cells import cells


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
        reporting.report_on(tmp_path, as_json=False)
    said = f"make room: the run is whole, and `twoway report {tmp_path}` completes it"
    assert caught.value.hint == said
