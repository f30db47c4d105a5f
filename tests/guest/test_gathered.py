"""A gathered run has a report of this machine, not the one that it was sent with."""

import shutil
from pathlib import Path

from support.warm_command import twoway


def test_a_gathered_run_has_a_report_of_this_machine(small_run: Path, tmp_path: Path) -> None:
    """`lab gather` writes a run's report again, and keeps nothing of a page from the archive."""
    there = tmp_path / "there" / small_run.parent.name / small_run.name
    shutil.copytree(small_run, there)
    (there / "report.html").write_text("<script>alert(1)</script>")
    packed = twoway("lab", "pack", "--results", tmp_path / "there", "--to", tmp_path / "runs.tar")
    assert packed.returncode == 0, packed.stderr
    here = tmp_path / "here"
    done = twoway("lab", "gather", tmp_path / "runs.tar", "--results", here)
    assert done.returncode == 0, done.stderr
    page = here / small_run.parent.name / small_run.name / "report.html"
    assert "alert(1)" not in page.read_text("utf-8")
    assert "efficiency" in page.read_text("utf-8").lower()
